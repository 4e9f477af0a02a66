"""What a process did lately is kept within a bound, and given back as far as a shard does not know it."""

from __future__ import annotations

from webfountain.store.shared.repeat_log import RepeatLog, SentStep


def step(number: int, shard: int, arguments: bytes = b"x") -> SentStep:
    return SentStep(number, shard, "discover", arguments)


def test_each_shard_gets_its_own_steps_in_their_order() -> None:
    log = RepeatLog()
    log.add([step(1, 0), step(1, 1), step(2, 0), step(3, 2), step(4, 0)])
    rows, _ = log.take({0: 1, 1: 0})
    assert rows == [[step(1, 1), step(2, 0)], [step(4, 0)]]
    assert log.take({0: 0, 2: 0})[0] == [[step(1, 0), step(3, 2)]], "what was not lost is kept, the rest is gone"


def test_calls_since_the_earliest_loss_are_made_again_and_of_a_name_the_last() -> None:
    log, done = RepeatLog(), list[str]()
    log.add_call(1, lambda: done.append("old"), size=1)
    log.add_call(3, lambda: done.append("plan 1"), size=1, name="plan")
    log.add_call(4, lambda: done.append("forget"), size=1)
    log.add_call(5, lambda: done.append("plan 2"), size=1, name="plan")
    for call in log.take({0: 9, 1: 2})[1]:
        call()
    assert done == ["forget", "plan 2"]
    assert log.take({0: 2})[1] == []


def test_the_oldest_go_when_there_is_too_much() -> None:
    log = RepeatLog(most_bytes=1000)
    for number in range(1, 30):
        log.add([step(number, 0, b"x" * 100)])
        log.add_call(number, lambda: None, size=100)
    rows, calls = log.take({0: 0})
    assert [one.number for row in rows for one in row] == [27, 28, 29]
    assert len(calls) == 3
