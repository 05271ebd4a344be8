"""When a full collection is due: the policy alone, on invented programs with a clock of their own."""

from flarena._collector import Policy

MB = 1 << 20


class Program:
    """Live bytes, garbage among them, and a clock; it passes a safe point each second."""

    def __init__(self, cost_s=0.02):
        self.now, self.live, self.garbage, self.cost_s = 0.0, 0, 0, cost_s
        self.policy, self.collections, self.spent_s = Policy(0.0), 0, 0.0

    def hold(self, mb):
        self.live += mb * MB

    def forget(self, mb):
        self.hold(mb)
        self.garbage += mb * MB

    def pass_by(self, seconds=1.0):
        self.now += seconds
        if self.policy.is_due(self.live, self.now):
            self.collect(ours=True)
            return True
        return False

    def collect(self, ours):
        before = self.live
        self.live, self.garbage = self.live - self.garbage, 0
        self.now += self.cost_s
        self.policy.collected(before, self.live, self.cost_s, self.now, ours)
        if ours:
            self.collections, self.spent_s = self.collections + 1, self.spent_s + self.cost_s


def little_is_left_alone():
    program = Program()
    for _ in range(100):
        program.forget(0)
        program.pass_by()
    program.forget(15)
    assert not program.pass_by()
    program.forget(1)
    assert program.pass_by()


def an_eighth_of_what_lives_may_be_garbage():
    program = Program()
    program.hold(200)
    assert program.pass_by() and program.collections == 1
    program.forget(24)
    assert not program.pass_by(100)
    program.forget(2)
    assert program.pass_by(100) and program.live == 200 * MB


def and_of_much_no_more_than_32_mb():
    program = Program()
    program.hold(10_000)
    assert program.pass_by()
    program.forget(31)
    assert not program.pass_by(100)
    program.forget(1)
    assert program.pass_by(100) and program.live == 10_000 * MB


def a_sawtooth_stays_flat():
    program, highest = Program(), 0
    program.hold(300)
    for _ in range(100):
        program.forget(64)
        highest = max(highest, program.live)
        program.pass_by(5)
    assert highest <= (300 + 3 * 64) * MB, highest
    assert program.spent_s < 0.01 * program.now


def growth_that_is_none_of_garbage_backs_off():
    program = Program()
    for _ in range(1000):
        program.hold(64)
        program.pass_by(5)
    assert program.collections <= 12, program.collections


def one_success_forgets_the_back_off():
    program = Program()
    for _ in range(5):
        program.hold(1000)
        program.pass_by(60)
    collections = program.collections
    while program.collections == collections:
        program.forget(1000)
        program.pass_by(60)
    program.forget(int(program.live / MB / 4) + 1)
    assert program.pass_by(60)


def collections_of_others_count():
    program = Program()
    for _ in range(50):
        program.forget(15)
        assert not program.pass_by()
        program.collect(ours=False)
    assert program.collections == 0


def collections_of_others_that_find_nothing_do_not_forget_the_back_off():
    program = Program()
    collections = 0
    for _ in range(200):
        program.hold(200)
        collections += program.pass_by(60)
        program.collect(ours=False)
        program.hold(-200)
    assert collections <= 12, collections


def never_more_than_a_hundredth_of_the_time():
    for cost_s in (0.001, 0.1, 3.0):
        program = Program(cost_s)
        for _ in range(20_000):
            program.forget(1000)
            program.pass_by(0.1)
        assert program.collections > 1
        assert program.spent_s <= 0.01 * program.now + cost_s, (cost_s, program.spent_s, program.now)


def what_a_quiet_day_saved_up_is_not_spent_at_once():
    program = Program(0.1)
    program.forget(1000)
    program.pass_by()
    program.pass_by(86400)
    spent_s = program.spent_s
    for _ in range(600):
        program.forget(1000)
        program.pass_by(0.1)
    assert program.spent_s - spent_s <= 1 + 0.01 * 120 + 0.1, program.spent_s


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if callable(test) and test.__module__ == "__main__" and not isinstance(test, type):
            test()
            print(name)
