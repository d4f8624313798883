#!/usr/bin/env python3
"""The checker of histories must accept a lawful history and complain about each kind of broken one."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from history import Checker, Event, Operation, check_stream  # noqa: E402


def op(kind, start, end, status=None, token=None, basis=None, version=None, seen=None, uid=None, items=None, name="a"):
    made = Operation(kind, name, token, basis, start)
    made.end, made.status, made.version, made.seen, made.uid, made.items = end, status, version, seen, uid, items
    return made


EVENTS = [Event("ADDED", "a", 10, "t1", "u"), Event("MODIFIED", "a", 12, "t2", "u"), Event("DELETED", "a", 15, "t2", "u")]


def lawful():
    return [
        op("get", 0, 1, 404),
        op("create", 1, 2, 201, "t1", version=10, seen="t1"),
        op("create", 1.5, 3, 409, "t9"),
        op("get", 3, 4, 200, version=10, seen="t1"),
        op("update-at", 4, 6, 200, "t2", basis=10, version=12, seen="t2"),
        op("update-at", 5, 7, 409, "t3", basis=10),
        op("patch-test", 7, 8, 422, "t4", basis="t1"),
        op("list", 7, 8, 200, version=13, items={"a": (12, "t2")}),
        op("delete", 8, 9, 200, uid="u"),
        op("patch", 9.5, 10, 404, "t5"),
        op("list", 9.5, 10, 200, version=15, items={}),
    ]


class CheckerTest(unittest.TestCase):
    def complains(self, about, operations, events=EVENTS):
        problems = Checker(operations, events).check()
        self.assertTrue(any(about in problem for problem in problems), "%s not in %s" % (about, problems))

    def changed(self, index, **fields):
        operations = lawful()
        for name, value in fields.items():
            setattr(operations[index], name, value)
        return operations

    def test_accepts_a_lawful_history(self):
        self.assertEqual(Checker(lawful(), EVENTS).check(), [])

    def test_accepts_a_lost_answer_with_and_without_effect(self):
        lost = self.changed(4, status=None, end=float("inf"), version=None, seen=None)
        self.assertEqual(Checker(lost, EVENTS).check(), [])
        self.assertEqual(Checker(lawful() + [op("patch", 3, float("inf"), token="t7")], EVENTS).check(), [])

    def test_complains_about_a_lost_write(self):
        self.complains("no event shows it", lawful() + [op("patch", 8, 8.5, 200, "t6", version=14, seen="t6")])

    def test_complains_about_an_event_of_nobody(self):
        self.complains("nobody wrote", lawful(), EVENTS + [Event("ADDED", "a", 20, "t8", "v")])

    def test_complains_about_a_stale_read(self):
        self.complains("no state it can have met", lawful() + [op("get", 7, 8, 200, version=10, seen="t1")])

    def test_complains_about_reads_that_go_back(self):
        back = [op("get", 4.1, 4.2, 200, version=12, seen="t2"), op("get", 4.3, 4.4, 200, version=10, seen="t1")]
        self.complains("no state it can have met", lawful() + back)

    def test_complains_about_a_read_of_the_future(self):
        self.complains("no state it can have met", lawful() + [op("get", 3, 3.5, 200, version=12, seen="t2")])

    def test_complains_about_an_unfounded_conflict(self):
        self.complains("no state it can have met", lawful() + [op("update-at", 3, 3.5, 409, "t6", basis=10)])

    def test_complains_about_an_unfounded_absence(self):
        self.complains("no state it can have met", lawful() + [op("get", 7, 7.5, 404)])

    def test_complains_about_a_lost_update(self):
        self.complains("although the version was", self.changed(4, basis=9))

    def test_complains_about_a_refusal_with_effect(self):
        self.complains("refused, but took effect", self.changed(4, status=409))

    def test_complains_about_a_torn_list(self):
        self.complains("shows a as", self.changed(7, items={"a": (10, "t1")}))

    def test_complains_about_an_old_list(self):
        self.complains("was known before", lawful() + [op("list", 8, 8.5, 200, version=11, items={"a": (10, "t1")})])

    def test_complains_about_streams_with_gaps_repeats_and_disorder(self):
        self.assertEqual(check_stream(EVENTS), [])
        self.assertTrue(check_stream([EVENTS[0], EVENTS[0]]))
        self.assertTrue(check_stream([EVENTS[0], EVENTS[2], EVENTS[1]]))
        self.assertTrue(check_stream(EVENTS[1:]))


if __name__ == "__main__":
    unittest.main()
