"""Configuration files of another's making, as bytes."""

from collections.abc import Callable
from typing import Any

import yaml
from hostile_cases import Case, Sandbox
from tiny_project import CONFIG, MODEL


def unreadable(name: str, content: bytes) -> Case:
    """Return a case that Snakemake refuses, before it reads a line of this project."""
    return raw(name, lambda sandbox: content, before_us=True)


def raw(name: str, content: Callable[[Sandbox], bytes], *, before_us: bool = False) -> Case:
    """Return a case of a whole configuration file."""
    return Case(name, content, ("config",), before_us=before_us)


def model(
    name: str, changes: dict[str, Any], *named: str, called: str = MODEL, harmless: bool = False
) -> Case:
    """Return a case of the tiny configuration with keys of its model changed."""
    document = {**CONFIG, "models": {called: {**CONFIG["models"][MODEL], **changes}}}
    text = yaml.safe_dump(document).encode()
    return Case(name, lambda sandbox: text, named or tuple(changes), harmless=harmless)


def top(name: str, changes: dict[str, Any], *, harmless: bool = False) -> Case:
    """Return a case of the tiny configuration with other keys changed."""
    text = yaml.safe_dump({**CONFIG, **changes}).encode()
    return Case(name, lambda sandbox: text, tuple(changes), harmless=harmless)


def bomb(sandbox: Sandbox) -> bytes:
    """Return ten levels of aliases, each ten times the one before."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 10)
    ]
    return "\n".join(lines).encode()


def tagged(tag: str) -> Callable[[Sandbox], bytes]:
    """Return a document with a tag that would run the payload."""
    return lambda sandbox: f"models: !!python/object/apply:{tag} [{sandbox.payload!r}]\n".encode()


CASES = [
    unreadable("not UTF-8", b"models:\n  caf\xe9: {}\n"),
    unreadable("UTF-16 without its mark", "models: {}".encode("utf-16-le")),
    unreadable("lists nested 2,000 deep", b"models: " + b"[" * 2000 + b"]" * 2000),
    unreadable("maps nested 2,000 deep", b"models: " + b"{a: " * 2000 + b"1" + b"}" * 2000),
    raw("aliases of aliases", bomb),
    unreadable("an alias of itself", b"models: &a\n  m: *a\n"),
    raw("a tag that calls os.system", tagged("os.system"), before_us=True),
    raw("a tag that calls subprocess", tagged("subprocess.check_output"), before_us=True),
    unreadable("control characters", b"models: \x00\x1b[2J\n"),
    unreadable("a list", b"- a\n- b\n"),
    unreadable("a word", b"word\n"),
    unreadable("nothing", b""),
    unreadable("half a document", yaml.safe_dump(CONFIG).encode()[:300] + b"\n  - {"),
    unreadable("a number of 10^6 digits", b"seed: " + b"9" * 10**6 + b"\n"),
    top("paths of Snakemake's logs elsewhere", {"pathvars": {"logs": "../outside"}}),
    top("10^30 threads", {"threads": 10**30}),
    model("a model above the folder", {"seed": 1}, "models", called="../../outside/x"),
    model("a model that controls a terminal", {"seed": 1}, "models", called="\x1b[2J"),
    model("a model of 300 letters", {"seed": 1}, "models", called="x" * 300),
    model("a model that is a wildcard", {"seed": 1}, "models", called="{model}"),
    model("a home that nobody has", {"checkpoint": "path:~nosuchuser/x"}),
    model("a search of the whole machine", {"data": "files:/**/*"}),
    model("a path of 4,096 letters", {"data": "files:" + "x" * 4096}),
    model("a path with NUL", {"data": "files:a\0b"}),
    model("a command as a path", {"data": "files:$(touch marker)"}),
    # the job refuses it: a plan does not import transformers
    model("an architecture of a call", {"checkpoint": "scratch:bert?to_dict=5"}, harmless=True),
    model("a pattern without an end", {"checkpoint": "scratch:bert?hidden_size=["}),
    model("a module above the folder", {"data": "docstrings:../../outside"}),
    model("a package that runs when imported", {"data": "docstrings:antigravity"}, harmless=True),
]
