"""The part of NVFlare's contexts that the hooks read."""


class ServerContext:
    def get_process_type(self):
        return "SJ"

    def get_identity_name(self):
        return "the project"

    def get_prop(self, name, default=None):
        return 5 if name == "current_round" else default


class ClientContext:
    task_data = None

    def get_process_type(self):
        return "CJ"

    def get_identity_name(self):
        return "site-1"

    def get_prop(self, name, default=None):
        return self.task_data if name == "__task_data__" else default
