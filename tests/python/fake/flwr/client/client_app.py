from flwr.clientapp.client_app import ClientApp as ClientApp
