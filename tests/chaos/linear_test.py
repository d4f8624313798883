#!/usr/bin/env python3
"""The search for a linear order must accept lawful histories, find each kind of planted violation, and agree with trying all orders."""
import itertools
import math
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import linear  # noqa: E402
from history import Operation  # noqa: E402

LOST = math.inf


def op(kind, start, end, status=None, token=None, expected=None, seen=None, items=None, name="a"):
    made = Operation(kind, name, token, start=start, expected=expected)
    made.end, made.status, made.items = end, status, items
    made.seen = seen or (token if status in (200, 201) else None)
    return made


def lawful():
    return [
        op("get", 0, 1, 404),
        op("create", 1, 2, 201, "t1"),
        op("create", 1.5, 3, 409, "t9"),
        op("get", 3, 4, 200, seen="t1"),
        op("update-at", 4, 6, 200, "t2", expected="t1"),
        op("update-at", 5, 7, 409, "t3", expected="t1"),
        op("patch-test", 7, 8, 422, "t4", expected="t1"),
        op("list", 7, 8, 200, items={"a": (0, "t2")}),
        op("delete", 8, 9, 200),
        op("patch", 9.5, 10, 404, "t5"),
        op("list", 9.5, 10, 200, items={}),
    ]


class LinearTest(unittest.TestCase):
    def refuses(self, operations):
        self.assertTrue(linear.check(operations))

    def accepts(self, operations):
        self.assertEqual(linear.check(operations), [])

    def changed(self, index, **fields):
        operations = lawful()
        for name, value in fields.items():
            setattr(operations[index], name, value)
        return operations

    def test_accepts_a_lawful_history(self):
        self.accepts(lawful())

    def test_accepts_a_lost_answer_with_and_without_effect(self):
        self.accepts(self.changed(4, status=None, end=LOST))
        self.accepts(lawful() + [op("patch", 3, LOST, token="t7")])
        self.accepts(lawful() + [op("patch", 3, LOST, token="t7"), op("get", 7.5, 7.6, 200, seen="t7")])

    def test_accepts_a_lost_answer_that_takes_effect_late(self):
        self.accepts(lawful() + [op("create", 0, LOST, token="t7"), op("get", 11, 12, 200, seen="t7")])

    def test_accepts_chains_of_lost_answers(self):
        self.accepts([op("create", 0, LOST, token="t1"), op("patch", 1, LOST, token="t2"), op("delete", 2, LOST),
                      op("get", 3, 4, 200, seen="t1"), op("get", 5, 6, 200, seen="t2"), op("get", 7, 8, 404)])

    def test_finds_a_stale_read(self):
        self.refuses(lawful() + [op("get", 7, 8, 200, seen="t1")])

    def test_finds_a_stale_list(self):
        self.refuses(self.changed(7, items={"a": (0, "t1")}))

    def test_finds_a_stale_absence(self):
        self.refuses(lawful() + [op("get", 7, 7.5, 404)])

    def test_finds_reads_that_go_back(self):
        self.refuses(lawful() + [op("get", 4.1, 4.2, 200, seen="t2"), op("get", 4.3, 4.4, 200, seen="t1")])

    def test_finds_a_read_of_the_future(self):
        self.refuses(lawful() + [op("get", 3, 3.5, 200, seen="t2")])

    def test_finds_a_lost_update(self):
        self.refuses(self.changed(5, status=200, seen="t3"))

    def test_finds_a_lost_acknowledged_write(self):
        self.refuses(lawful() + [op("create", 11, 12, 201, "t6"), op("get", 13, 14, 404)])
        self.refuses(lawful() + [op("create", 11, 12, 201, "t6"), op("patch", 13, 14, 200, "t7"), op("get", 15, 16, 200, seen="t6")])

    def test_finds_a_refused_write_that_took_effect(self):
        self.refuses(lawful() + [op("get", 7.5, 7.6, 200, seen="t3")])

    def test_finds_a_lost_write_that_took_effect_twice(self):
        self.refuses(lawful() + [op("create", 0, LOST, token="t7"), op("get", 11, 12, 200, seen="t7"), op("delete", 13, 14, 200),
                                 op("get", 15, 16, 200, seen="t7")])

    def test_finds_one_lost_delete_that_deleted_twice(self):
        self.refuses([op("delete", 0, LOST), op("create", 1, 2, 201, "t1"), op("get", 3, 4, 404), op("create", 5, 6, 201, "t2"),
                      op("get", 7, 8, 404)])

    def test_finds_a_lost_write_before_it_began(self):
        self.refuses([op("create", 0, 1, 201, "t1"), op("get", 2, 3, 200, seen="t2"), op("patch", 4, LOST, token="t2")])

    def test_finds_an_answer_with_anothers_token(self):
        self.refuses(self.changed(4, seen="t9"))

    def test_finds_what_nobody_wrote(self):
        self.refuses(lawful() + [op("get", 3, 4, 200, seen="made-up")])

    def test_forgets_what_was_refused_for_haste_and_what_failed_inside(self):
        self.accepts(lawful() + [op("patch", 3, 3.1, 429, "t7"), op("get", 3, 3.1, 503)])
        self.accepts(lawful() + [op("patch", 3, 3.1, 504, "t7"), op("get", 7.5, 7.6, 200, seen="t7")])
        self.refuses(lawful() + [op("patch", 3, 3.1, 429, "t7"), op("get", 7.5, 7.6, 200, seen="t7")])


def by_all_orders(operations):
    """The plain definition: some order of the finished and of some of the lost ones explains every answer."""
    steps = [step for one in operations for _, step in linear.steps_of(one, [])]
    finished = [s for s in steps if s.end != LOST]
    lost = [s for s in steps if s.end == LOST]

    def explains(order):
        state = linear.ABSENT
        for place, step in enumerate(order):
            if any(later.end < step.start for later in order[place:]) or not linear.fits(step.needs, state):
                return False
            if step.makes is not linear.KEEP:
                state = step.makes
        return True
    return any(explains(order) for count in range(len(lost) + 1) for some in itertools.combinations(lost, count)
               for order in itertools.permutations(finished + list(some)))


def random_history(chance):
    """A few operations at random times with answers that may be right."""
    made = []
    for number in range(chance.randint(2, 6)):
        start = chance.uniform(0, 5)
        kind = chance.choice(["create", "update", "patch", "update-at", "delete", "delete-at", "get", "get", "get"])
        one = op(kind, start, start + chance.uniform(0.1, 3), token="t%d" % number)
        if kind in ("update-at", "delete-at"):
            one.expected = "t%d" % chance.randint(0, 5)
        if kind == "get":
            one.status = chance.choice([200, 200, 200, 404])
            one.seen = "t%d" % chance.randint(0, 5)
        elif chance.random() < 0.4:
            one.end = LOST
        else:
            refusals = {"create": [409], "update-at": [404, 409], "delete-at": [404, 409]}.get(kind, [404])
            one.status = chance.choice([200, 200] + refusals)
            one.seen = one.token
        made.append(one)
    return made


class AllOrdersTest(unittest.TestCase):
    def test_agrees_with_trying_all_orders(self):
        verdicts = [0, 0]
        for seed in range(3000):
            operations = random_history(random.Random(seed))
            want = by_all_orders(operations)
            verdicts[want] += 1
            self.assertEqual(not linear.check(operations), want, "seed %d: %s" % (seed, "; ".join(map(str, operations))))
        self.assertGreater(min(verdicts), 300)


class BigTest(unittest.TestCase):
    def simulate(self, seed, count=3000, clients=16, lost=0.05, broken=False):
        """A register that really is one, with clients at the same time; perhaps one read of it is old."""
        chance, state, made = random.Random(seed), linear.ABSENT, []
        past = [linear.ABSENT]
        free, pending = [0.0] * clients, []
        now = 0.0
        for number in range(count):
            client = chance.randrange(clients)
            now += chance.expovariate(10)
            start = max(free[client], now - chance.uniform(0, 2))
            now = max(now, start)
            end = now + chance.uniform(0, 0.5)
            kind = chance.choice(["create", "patch", "patch-test", "delete", "get", "get"])
            one = op(kind, start, end, token="t%d" % number, expected=chance.choice(past[-3:]) or "none")
            needs, makes = linear.wants(one) if kind != "get" else (("present", None), state)
            if linear.fits(needs, state):
                state, one.status, one.seen = makes, 200, makes if kind == "get" else one.token
            else:
                one.status = 404 if state is linear.ABSENT else 409
            if state != past[-1]:
                past.append(state)
            if kind != "get" and chance.random() < lost:
                one.status, one.end, one.seen = None, LOST, None
                end = now
            free[client] = end
            made.append(one)
        if broken:
            read = next(o for o in made[count // 2:] if o.kind == "get" and o.status == 200)
            read.seen = past[1]
        return made

    def test_accepts_big_histories_with_many_lost_answers(self):
        for seed in range(4):
            self.assertEqual(linear.check(self.simulate(seed, lost=0.1 * seed)), [])

    def test_finds_one_old_read_in_a_big_history(self):
        for seed in range(4):
            self.assertTrue(linear.check(self.simulate(seed, broken=True)))


if __name__ == "__main__":
    unittest.main()
