class CallbackList:
    def __init__(self, **params):
        self.params = params

    def on_round_begin(self, round_num, logs=None):
        return "begun"

    def on_round_end(self, round_num, logs=None):
        pass

    def on_task_begin(self, task_name, round_num, logs=None):
        pass

    def on_task_end(self, task_name, round_num, logs=None):
        pass
