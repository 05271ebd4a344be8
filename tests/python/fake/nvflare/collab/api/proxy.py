class Proxy:
    def __init__(self, app):
        self.app = app

    def call_func(self, call_opt, name, args, kwargs):
        return name, args, kwargs
