"""Keys that belong to a choice, such as `momentum` to some optimizers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import field_validator


@dataclass(frozen=True)
class Choice:
    """A key that chooses, and the keys that belong to its values.

    Attributes:
        key: the key that chooses.
        defaults: maps each of its values to the keys that belong to it, with
            their defaults. A value that is not in it may have any of these
            keys.
        others: further keys that lose their meaning with another value.
    """

    key: str
    defaults: Mapping[str, Mapping[str, Any]]
    others: tuple[str, ...] = ()

    def keys(self) -> list[str]:
        """Returns the keys that belong to one value or another."""
        return list(dict.fromkeys(k for d in self.defaults.values() for k in d))

    def defaults_of(self, key: str) -> list[Any]:
        """Returns the different defaults of a key."""
        found = [d[key] for d in self.defaults.values() if key in d]
        return list(dict.fromkeys(found))

    def validator(self):
        """Returns the pydantic validator of these keys, for a class body.

        It fills in the defaults of the chosen value, and refuses the keys of
        other values.
        """

        def check(cls, value, info):
            name, chosen = info.field_name, info.data.get(self.key)
            if chosen not in self.defaults:
                return value
            if name in self.defaults[chosen]:
                return self.defaults[chosen][name] if value is None else value
            if value is None:
                return None
            owners = [k for k, keys in self.defaults.items() if name in keys]
            raise ValueError(
                f"`{name}` belongs to `{self.key}: {' or '.join(owners)}`. "
                f"Received: {value} with `{self.key}: {chosen}`. Leave it out."
            )

        return field_validator(*self.keys())(check)
