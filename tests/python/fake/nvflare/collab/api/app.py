class App:
    name = "site-2"

    def find_collab_method(self, target, name):
        return getattr(target, name, None)
