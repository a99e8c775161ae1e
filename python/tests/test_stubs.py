"""The type stubs say what the compiled modules have: every name, every method, every argument's name."""

import ast
import re
from pathlib import Path

import pytest

import mooncake.engine
import mooncake.store

PACKAGE = Path(__file__).resolve().parents[1] / "mooncake"
MODULES = [mooncake.engine, mooncake.store]


def names_in(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    found = {}
    for statement in body:
        match statement:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found[name] = statement
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = statement
    return found


def public(names) -> set[str]:
    return {name for name in names if not name.startswith("_")}


@pytest.fixture(params=MODULES, ids=lambda module: module.__name__)
def module_and_stub(request):
    name = request.param.__name__.rpartition(".")[2]
    return request.param, names_in(ast.parse((PACKAGE / f"{name}.pyi").read_text()).body)


def test_names_agree(module_and_stub):
    module, stub = module_and_stub
    assert public(dir(module)) == public(stub)


def test_members_agree(module_and_stub):
    module, stub = module_and_stub
    for name, statement in stub.items():
        if isinstance(statement, ast.ClassDef):
            inherited = {"name", "value"}  # Of enumerations.
            real = public(vars(getattr(module, name))) - inherited
            assert real == public(names_in(statement.body)) - inherited, name


def test_arguments_have_the_documented_names(module_and_stub):
    module, stub = module_and_stub
    for class_name, statement in stub.items():
        if not isinstance(statement, ast.ClassDef):
            continue
        for method in (node for node in statement.body if isinstance(node, ast.FunctionDef)):
            wanted = [argument.arg for argument in method.args.args[1:]]
            signature = getattr(getattr(module, class_name), method.name).__doc__ or ""
            if method.args.posonlyargs or not wanted or method.name.startswith("__"):
                continue
            for argument in wanted:
                assert re.search(rf"\b{argument}: ", signature), f"{class_name}.{method.name}: {argument}"
