from types import SimpleNamespace


class ClientApp:
    def __call__(self, message, context):
        if message.metadata.message_type.endswith(".fails"):
            raise ValueError("the client of the fake failed")
        return "reply", message

    class Message:
        def __init__(self, message_type, group_id, config):
            self.metadata = SimpleNamespace(message_type=message_type, group_id=group_id)
            self._config = config

        def has_content(self):
            return self._config is not None

        @property
        def content(self):
            assert self.has_content()
            return SimpleNamespace(config_records={"fitins": {}, "config": self._config})

    class Context:
        def __init__(self, node_id, node_config):
            self.node_id, self.node_config = node_id, node_config
