"""The group coordinator of the model of Kafka: members, generations, assignments and committed offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import kafka.errors as kafka_errors


@dataclass(slots=True)
class Member:
    """subscription: what it said when it joined. waiting: its request to join is held until all have joined."""

    subscription: Any
    session_s: float
    heard_s: float
    waiting: bool = False


class Group:
    """A group of the classic protocol: all join, the leader assigns, all fetch what they got."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self.generation = 0
        self.state = "empty"
        """empty, joining, assigning or stable."""
        self.members: dict[str, Member] = {}
        self.leader = ""
        self.assignment: dict[str, Any] = {}
        self.offsets: dict[Any, Any] = {}
        self.pending: dict[int, dict[Any, Any]] = {}
        """Producer to the offsets in its open transaction."""
        self.lost = 0
        """Members that were not heard of in time."""
        self._joined = 0

    def join(self, member: str, subscription: Any, session_s: float) -> str:
        """Ask to be in the next generation; the name of the member. Raises UnknownMemberIdError."""
        if not member:
            self._joined += 1
            member = f"member-{self._joined}"
        elif member not in self.members:
            raise kafka_errors.UnknownMemberIdError(member)
        self.members[member] = Member(subscription, session_s, self._clock_s(), waiting=True)
        if self.state != "joining":
            self._rejoin(member)
        self._complete()
        return member

    def joined(self, member: str) -> int | None:
        """The generation that the request to join led to, None while it is held. Raises UnknownMemberIdError."""
        self._require(member)
        return None if self.members[member].waiting else self.generation

    def assign(self, member: str, generation: int, assignment: dict[str, Any]) -> None:
        """What the leader decided. Raises as fetch()."""
        self._require_current(member, generation)
        if member == self.leader and self.state == "assigning":
            self.assignment, self.state = assignment, "stable"

    def fetch(self, member: str, generation: int) -> Any:
        """What a member got; None while the leader has not said.

        Raises UnknownMemberIdError, IllegalGenerationError, RebalanceInProgressError.
        """
        self._require_current(member, generation)
        self.members[member].heard_s = self._clock_s()
        return self.assignment[member] if self.state == "stable" else None

    def heartbeat(self, member: str, generation: int) -> None:
        """Raises as fetch()."""
        self._require(member)
        self.members[member].heard_s = self._clock_s()
        self._require_current(member, generation)

    def leave(self, member: str) -> None:
        if self.members.pop(member, None) is not None:
            self._rejoin()
            self._complete()

    def expire(self, now_s: float) -> None:
        """Drop members that were silent for longer than their session. Who waits to join is not expected to speak."""
        for name, member in list(self.members.items()):
            if not member.waiting and now_s - member.heard_s > member.session_s:
                self.lost += 1
                self.leave(name)

    def knows(self, member: str, generation: int) -> bool:
        """Whether offsets in a transaction are accepted: between joining and assigning they are."""
        if generation < 0 and not member:
            return not self.members
        return member in self.members and generation == self.generation

    def settle(self, producer: int, commit: bool) -> None:
        """A transaction is decided."""
        offsets = self.pending.pop(producer, {})
        if commit:
            self.offsets.update(offsets)

    def undecided(self, place: Any) -> bool:
        return any(place in offsets for offsets in self.pending.values())

    def _rejoin(self, first: str | None = None) -> None:
        if self.state != "joining":
            for name, member in self.members.items():
                member.waiting = name == first
        self.state = "joining" if self.members else "empty"

    def _complete(self) -> None:
        if self.state == "joining" and all(member.waiting for member in self.members.values()):
            self.generation += 1
            self.state, self.assignment = "assigning", {}
            if self.leader not in self.members:
                self.leader = next(iter(self.members))
            for member in self.members.values():
                member.waiting, member.heard_s = False, self._clock_s()

    def _require(self, member: str) -> None:
        if member not in self.members:
            raise kafka_errors.UnknownMemberIdError(member)

    def _require_current(self, member: str, generation: int) -> None:
        self._require(member)
        if generation != self.generation:
            raise kafka_errors.IllegalGenerationError(member)
        if self.state == "joining":
            raise kafka_errors.RebalanceInProgressError(member)
