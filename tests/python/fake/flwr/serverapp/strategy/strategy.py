class Strategy:
    def configure_train(self, server_round, arrays):
        return [arrays]

    def aggregate_train(self, server_round, replies):
        return sum(replies)

    def start(self, arrays, num_rounds):
        for current_round in range(1, num_rounds + 1):
            arrays = self.aggregate_train(current_round, self.configure_train(current_round, arrays))
        return arrays
