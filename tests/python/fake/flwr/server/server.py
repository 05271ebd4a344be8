def fit_clients(client_instructions, max_workers, timeout, group_id):
    return client_instructions, []


class Server:
    def fit_round(self, server_round, timeout):
        if server_round > 5:
            return None
        return fit_clients(client_instructions=[3], max_workers=1, timeout=timeout, group_id=server_round)
