class Group:
    def __init__(self, app):
        self._app = app

    def __getattr__(self, name):
        def method(*args, **kwargs):
            return name, args, kwargs

        return method
