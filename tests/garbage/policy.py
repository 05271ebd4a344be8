"""Tests of the policy that decides when a full collection is due, on simulated programs with a simulated clock."""

from flarena._collector import Policy

MB = 1 << 20


class Program:
    """A simulated program: live bytes, of which some are garbage, and a clock."""

    def __init__(self, cost_s=0.02):
        self.now, self.live, self.garbage, self.cost_s = 0.0, 0, 0, cost_s
        self.policy, self.collections, self.spent_s = Policy(0.0), 0, 0.0

    def hold(self, mb):
        self.live += mb * MB

    def add_garbage(self, mb):
        self.hold(mb)
        self.garbage += mb * MB

    def reach_safe_point(self, seconds=1.0):
        self.now += seconds
        if self.policy.is_due(self.live, self.now):
            self.collect(by_policy=True)
            return True
        return False

    def collect(self, by_policy):
        before = self.live
        self.live, self.garbage = self.live - self.garbage, 0
        self.now += self.cost_s
        self.policy.collected(before, self.live, self.cost_s, self.now, by_policy)
        if by_policy:
            self.collections, self.spent_s = self.collections + 1, self.spent_s + self.cost_s


def growth_below_16_mb_is_not_collected():
    program = Program()
    for _ in range(100):
        program.add_garbage(0)
        program.reach_safe_point()
    program.add_garbage(15)
    assert not program.reach_safe_point()
    program.add_garbage(1)
    assert program.reach_safe_point()


def growth_by_an_eighth_of_the_live_bytes_is_collected():
    program = Program()
    program.hold(200)
    assert program.reach_safe_point() and program.collections == 1
    program.add_garbage(24)
    assert not program.reach_safe_point(100)
    program.add_garbage(2)
    assert program.reach_safe_point(100) and program.live == 200 * MB


def growth_by_32_mb_is_collected_in_a_large_program():
    program = Program()
    program.hold(10_000)
    assert program.reach_safe_point()
    program.add_garbage(31)
    assert not program.reach_safe_point(100)
    program.add_garbage(1)
    assert program.reach_safe_point(100) and program.live == 10_000 * MB


def a_program_that_drops_cycles_stays_small():
    program, highest = Program(), 0
    program.hold(300)
    for _ in range(100):
        program.add_garbage(64)
        highest = max(highest, program.live)
        program.reach_safe_point(5)
    assert highest <= (300 + 3 * 64) * MB, highest
    assert program.spent_s < 0.01 * program.now


def growth_without_garbage_backs_off():
    program = Program()
    for _ in range(1000):
        program.hold(64)
        program.reach_safe_point(5)
    assert program.collections <= 12, program.collections


def one_useful_collection_resets_the_back_off():
    program = Program()
    for _ in range(5):
        program.hold(1000)
        program.reach_safe_point(60)
    collections = program.collections
    while program.collections == collections:
        program.add_garbage(1000)
        program.reach_safe_point(60)
    program.add_garbage(int(program.live / MB / 4) + 1)
    assert program.reach_safe_point(60)


def collections_of_the_program_count():
    program = Program()
    for _ in range(50):
        program.add_garbage(15)
        assert not program.reach_safe_point()
        program.collect(by_policy=False)
    assert program.collections == 0


def useless_collections_of_the_program_do_not_reset_the_back_off():
    program = Program()
    collections = 0
    for _ in range(200):
        program.hold(200)
        collections += program.reach_safe_point(60)
        program.collect(by_policy=False)
        program.hold(-200)
    assert collections <= 12, collections


def collections_take_at_most_one_percent_of_the_time():
    for cost_s in (0.001, 0.1, 3.0):
        program = Program(cost_s)
        for _ in range(20_000):
            program.add_garbage(1000)
            program.reach_safe_point(0.1)
        assert program.collections > 1
        assert program.spent_s <= 0.01 * program.now + cost_s, (cost_s, program.spent_s, program.now)


def time_saved_in_a_quiet_day_is_not_spent_at_once():
    program = Program(0.1)
    program.add_garbage(1000)
    program.reach_safe_point()
    program.reach_safe_point(86400)
    spent_s = program.spent_s
    for _ in range(600):
        program.add_garbage(1000)
        program.reach_safe_point(0.1)
    assert program.spent_s - spent_s <= 1 + 0.01 * 120 + 0.1, program.spent_s


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if callable(test) and test.__module__ == "__main__" and not isinstance(test, type):
            test()
            print(name)
