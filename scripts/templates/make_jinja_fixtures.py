"""Renders small templates over all that Jinja2 and Python offer to one, for crates/judge-jinja/src/tests.rs.

    python scripts/templates/make_jinja_fixtures.py

Every filter, test, function and operator of Jinja2's own lists, and every method of Python's str, list, tuple, dict, int and float,
meets values of each kind; slices meet all signs of their bounds; statements and tags are written by hand; scopes are also random. Each is rendered by
transformers' own environment. A case is a template with its text, or with null where the rendering raises.
Made with transformers 5.23.0 and jinja2 3.1.6 on Python 3.11.
"""

import copy
import itertools
import json
import re
from pathlib import Path
from random import Random

import jinja2
import transformers
from transformers.utils.chat_template_utils import _compile_jinja_template

assert transformers.__version__ == "5.23.0", transformers.__version__
assert jinja2.__version__ == "3.1.6", jinja2.__version__

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "  One\ntwo & <three>  "},
    {"role": "assistant", "content": "Née à 5"},
]

VALUES = [
    "nothing", "none", "true", "0", "7", "-3", "2.5", "-0.0", "''", "'ab c'", "'Née'", "'12'", "' -3.5 '", "'a\\nb\\r\\nc'", "[]",
    "[3, 1, 2]", "['b', 'A']", "[1, 'a']", "()", "(1, 2)", "{}", "{'b': 1, 'A': 2}", "messages", "messages[0]", "range(3)",
    "messages|map(attribute='role')", "{'k': [1, {'x': none}]}.items()", "namespace(a=1)", "'<b>'|safe", "range",
]  # fmt: skip

FILTERS = {
    "abs": ["", "()"],
    "attr": ["('role')", "('a')", "('upper')", "(name='items')"],
    "batch": ["(2)", "(2, '-')", "(linecount=2, fill_with=0)"],
    "capitalize": [""],
    "center": ["(8)", "(width=5)", ""],
    "count": [""],
    "d": ["('x')"],
    "default": ["", "('x')", "('x', true)", "(default_value='x', boolean=true)", "(1, 2, 3)"],
    "dictsort": ["", "(true)", "(false, 'value')", "(reverse=true)", "(by='value')"],
    "e": [""],
    "escape": [""],
    "filesizeformat": ["", "(true)", "(binary=true)"],
    "first": [""],
    "float": ["", "(1.5)", "(default='x')"],
    "forceescape": [""],
    "format": ["", "(1)", "(a=1)"],
    "groupby": ["('role')", "(0)", "(attribute='role', default='x')", "('role', case_sensitive=true)"],
    "indent": ["", "(2)", "('>>')", "(2, true)", "(2, blank=true)", "(width=1, first=true, blank=true)"],
    "int": ["", "(9)", "(default=9)", "(0, 16)", "(base=2)"],
    "items": ["", "|list"],
    "join": ["", "(', ')", "('-', 'role')", "(d='+', attribute='role')", "(1)"],
    "last": [""],
    "length": [""],
    "list": [""],
    "lower": [""],
    "map": ["('upper')|list", "(attribute='role')|list", "(attribute='x', default='d')|list", "('default', 1)|list", "()", "('join', d='-')|list", "(attribute=0)|list", ""],
    "max": ["", "(attribute='role')", "(true)"],
    "min": ["", "(case_sensitive=true)"],
    "pprint": [""],
    "random": [],
    "reject": ["|list", "('odd')|list", "('in', [1, 'a'])|list"],
    "rejectattr": ["('role', 'equalto', 'user')|list", "('role')|list"],
    "replace": ["('b', 'x')", "('a', '', 1)", "(old='a', new='y')", "('', '-')", "(1, 2)", "('a')"],
    "reverse": ["", "|list", "|first"],
    "round": ["", "(1)", "(0, 'floor')", "(1, 'ceil')", "(method='floor')", "(precision=1)", "(0, 'x')"],
    "safe": ["", "~ '<'", "|upper", "|length", "|trim"],
    "select": ["|list", "('string')|list", "('divisibleby', 2)|list", "|length", "('nosuch')|list"],
    "selectattr": ["('role')|list", "('role', 'in', ['user'])|list", "('x', 'defined')|list", "()|list", "('role', 'undefined')|list"],
    "slice": ["(2)|list", "(2, 'x')|list", "(slices=3)|list"],
    "sort": ["", "(true)", "(reverse=true)", "(case_sensitive=true)", "(attribute='role')", "(attribute='role,content')"],
    "string": [""],
    "striptags": [""],
    "sum": ["", "(start=1)", "('b')", "(attribute=0)"],
    "title": [""],
    "tojson": ["", "(indent=2)", "(true)", "(false, 1)", "(separators=(',', ':'))", "(sort_keys=true)", "(x=1)"],
    "trim": ["", "('a')", "(chars=' 3')", "(1)"],
    "truncate": ["", "(3)", "(3, true)", "(3, false, '~', 0)", "(length=3, leeway=0, end='', killwords=true)"],
    "unique": ["|list", "(true)|list", "(attribute='role')|list"],
    "upper": [""],
    "urlencode": [""],
    "urlize": [""],
    "wordcount": [""],
    "wordwrap": ["(3)"],
    "xmlattr": ["", "(false)"],
}  # fmt: skip

TESTS = {
    "divisibleby": [" 2", "(num=3)", " 0"], "sameas": [" none", " true", "(1)"], "in": ["([1, 'a'])", "(messages)", "('Née')"],
    "==": [], "eq": ["(7)", "('12')"], "equalto": [" none", "(nothing)"], "!=": [], "ne": ["(0)"], ">": [], "gt": ["(1)"], "greaterthan": ["('a')"],
    "ge": ["(7)"], ">=": [], "<": [], "lt": ["(1.5)"], "lessthan": ["([2])"], "<=": [], "le": ["(true)"],
}  # fmt: skip

TEXTS = ["''", "'ab c'", "'Née ÀB'", "'1.5'", "'12'", "' x '", "'a,b,,c'", "'a\\r\\nb\\x0bc\\u2028d'", "'ǆß'", "'中文 a'", "'Ab Cd'", "'-42'"]
METHODS = {
    "capitalize": ["()"], "casefold": ["()"], "center": ["(6)", "(7, '*')", "(5, '')"], "count": ["('')", "('a')", "('b', 1)", "('a', 0, -1)"],
    "encode": ["()"], "endswith": ["('c')", "(('x', 'c'))", "('', 99)", "('b', 0, 2)", "(['c'])"], "expandtabs": ["()", "(4)"],
    "find": ["('b')", "('')", "('b', 2)", "('a', -2)", "('', 99)", "(1)"], "format": ["()", "(1)"], "format_map": ["({'a': 1})"],
    "index": ["('b')", "('')"], "isalnum": ["()"], "isalpha": ["()"], "isascii": ["()"], "isdecimal": ["()"], "isdigit": ["()"],
    "isidentifier": ["()"], "islower": ["()"], "isnumeric": ["()"], "isprintable": ["()"], "isspace": ["()"], "istitle": ["()"], "isupper": ["()"],
    "join": ["(['x', 'y'])", "('xyz')", "([1])", "([])", "({'p': 1, 'q': 2})", "(nothing)"], "ljust": ["(6)", "(6, '.')"], "lower": ["()"],
    "lstrip": ["()", "('a ')", "(none)"], "maketrans": ["('a', 'b')"], "partition": ["(',')", "('')", "(' ')"], "removeprefix": ["('a')", "('')"],
    "removesuffix": ["('c')", "('')"], "replace": ["('a', 'x')", "('', '-')", "('b', '', 1)", "('a', 'x', -1)", "('a')", "('a', 1)"],
    "rfind": ["('b')", "('', 0, 2)"], "rindex": ["('zz')", "('')"], "rjust": ["(6)", "(6, '中')"], "rpartition": ["(',')", "(' ')"],
    "rsplit": ["()", "(',')", "(none, 1)", "(',', 1)", "(',', maxsplit=1)", "('')"], "rstrip": ["()", "('c ')"],
    "split": ["()", "(',')", "(none, 1)", "(',', 1)", "(sep=',')", "('')", "(',', -1)", "(1)"], "splitlines": ["()", "(true)", "(keepends=true)"],
    "startswith": ["('a')", "(('x', 'a'))", "('b', 1)", "('')", "(1)"], "strip": ["()", "('a c')"], "swapcase": ["()"], "title": ["()"],
    "translate": ["({})"], "upper": ["()"], "zfill": ["(5)", "(0)"],
}  # fmt: skip

OTHER_METHODS = {
    "[3, 1, 3]": ["append(1)", "clear()", "copy()", "count(3)", "extend([1])", "index(3)", "index(3, 1)", "index(9)", "insert(0, 1)", "pop()", "remove(3)", "reverse()", "sort()"],
    "(3, 1)": ["count(3)", "index(1)", "copy()"],
    "{'a': 1, 'items': 2}": ["clear()", "copy()", "fromkeys([1])", "get('a')", "get('z')", "get('z', 0)", "get('z', default=0)", "items()", "keys()", "pop('a')", "popitem()", "setdefault('z', 1)", "update({})", "values()", "get()"],
    "(7)": ["bit_length()", "conjugate()", "real", "imag", "numerator", "denominator", "as_integer_ratio()", "to_bytes()", "x"],
    "(2.5)": ["is_integer()", "real", "hex()", "x"],
    "range(1, 9, 3)": ["start", "stop", "step", "index(4)", "count(7)", "x"],
}  # fmt: skip

FORMATS = [
    "'%s|%5s|%-5s|%.2s' % ('abc', 'a', 'b', 'xyz')", "'%d %i %5d %-5d| %05d %+d % d' % (1, 2, 3, 4, 5, 6, 7)", "'%x %X %o %#x %#o' % (255, 255, 8, 255, 8)",
    "'%f %.2f %8.3f %-8.1f| %08.2f %+.1f' % (1.5, 2.345, 3.14159, 2.25, 1.5, 2)", "'%e %.2E %g %g %g %G' % (12345.678, 0.00012, 0.00001, 123456789.0, 1.0, 1e-10)",
    "'%#g %#.0f %.0f %.0e' % (1.0, 2.0, 2.5, 12345.0)", "'%s %r %a' % ('é', 'é', 'é')", "'%c%c' % (65, 'b')", "'%%' % ()", "'%5%' % ()", "'%(a)s %(b)05d' % {'a': 1, 'b': 2}",
    "'%(a)s' % {}", "'%s' % [1]", "'%s %s' % (1,)", "'%s' % (1, 2)", "'x' % 1", "'x' % {}", "'x' % [1]", "'x' % ()", "'%d' % 'a'", "'%d' % 3.9", "'%x' % 3.5", "'%*d|%-*d|' % (5, 3, 4, 2)",
    "'%.*f' % (2, 1.239)", "'%z' % 1", "'%' % 1", "'%s' % none", "'%s' % true", "'%d' % true", "'%s' % nothing", "'%d' % nothing", "'%s' % ((1, 2),)", "'%05s' % 'a'", "'%ld' % 5", "'%.3d' % 5",
    "'%+.2e' % 0", "'%s' % 1e16", "'%(a' % {}", "'%s' % {'a': 1}", "'%.0f %.0f' % (0.5, 1.5)", "'%g' % 100000", "'%g' % 1000000", "'%f' % 'x'",
    "'{} {}'.format(1, 'a')", "'{0} {1} {0}'.format(1, 2)", "'{a} {b}'.format(a=1, b='x')", "'{} {0}'.format(1)", "'{}'.format()", "'{a}'.format()", "'{{}} {}'.format(1)", "'{'.format()", "'}'.format()",
    "'{:5}|{:<5}|{:>5}|{:^5}|{:*^7}'.format(1, 'a', 'b', 'c', 'd')", "'{:05d} {:+d} {: d} {:x} {:X} {:o} {:b} {:#x} {:#b}'.format(1, 2, 3, 255, 255, 8, 5, 255, 5)",
    "'{:,} {:_} {:,.2f} {:,}'.format(1234567, 1234567, 12345.678, 12)", "'{:.2f} {:.0f} {:e} {:g} {:.1%} {:%}'.format(1.239, 2.5, 12345.678, 0.00001, 0.1234, 0.5)", "'{:.3}'.format('abcdef')", "'{:.3}'.format(1.23456)",
    "'{!r} {!s} {!a}'.format('é', 'é', 'é')", "'{!r:>6}'.format('a')", "'{!x}'.format(1)", "'{:d}'.format('a')", "'{:s}'.format(1)", "'{:>{w}}'.format('a', w=4)", "'{:{}}'.format('a', 5)", "'{0[a]} {0[b]}'.format({'a': 1, 'b': 2})",
    "'{0.role}'.format(messages[0])", "'{m[role]}'.format(m=messages[0])", "'{0[1]}'.format([4, 5])", "'{:}'.format(none)", "'{:5}'.format(none)", "'{:5}'.format([1])", "'{}'.format(nothing)", "'{:5}'.format(nothing)", "'{:5}'.format(true)",
    "'{:08.2f}'.format(-1.5)", "'{:=+6d}'.format(5)", "'{:<06}'.format(5)", "'{:06}'.format('ab')", "'{:010,}'.format(1234)", "'{:e}'.format(0)", "'{:.2f}'.format(3)", "'{:5}'.format(2.5)", "'{:+}'.format(2.5)", "'{:c}'.format(65)",
    "'{:,x}'.format(1)", "'{:.2d}'.format(1)", "'{0:{1}{2}}'.format('x', '>', 4)", "'{:z}'.format(1)", "'{:5 }'.format(1)", "'{a.b}'.format(a=1)", "'{0!r}{0!s}'.format('q')", "'{:#}'.format(1)", "'{: }'.format(-1)", "'{:5}|'.format('é')",
    "'{a}'.format_map({'a': 1})", "'{b}'.format_map({'a': 1})", "'{}'.format_map({})", "'{{}}'.format_map({})", "'{0a}'.format_map({'0a': 1})", "'%s and %s'|format('a', 'b')", "'%(x)s'|format(x=1)", "'%s'|format", "'%s'|format(a=1)",
]  # fmt: skip

STATEMENTS = [
    "a\r\nb\r{{ 'x' }}\r\n", "{% if true %}\r\nx\r\n{% endif %}\r\ny\r", "{{ 'a\r\nb' }}", "a\n", "a\n\n", "\n", "", "a\r\n\r\n",
    "  {% if true %}  \n  x  \n  {% endif %}  \n y", "  {%- if true -%}  \n  x  \n  {%- endif -%}  \n y", "  {%+ if true +%}  \n  x  {% endif +%}\n y", "\t{% if true %}x{% endif %}\n\tz",
    "a {{- 1 -}} b {{ 2 -}}\n c {{- 3 }}", "a {# c #} b\n  {# c #}\n  d {#- e -#} f", "{#\n#}\nx", "x{# a {{ b }} {% c %} #}y", "a\u00a0{%- if true -%}\u2003x{% endif %}",
    "{% raw %}\n {{ x }} {% y %}\n{% endraw %}\nz", "a {%- raw -%} b {%- endraw -%} c", "{% raw %}{# {% raw %} #}{% endraw %}", "  {% raw %}\n x\n  {% endraw %}\n y", "{% raw %}", "{%raw%}{{%endraw%}", "{% raw x %}{% endraw %}",
    "{ { {% if true %}{{% endif %}", "{{ '{{' }}{{ '%}' }}{{ \"}}\" }}", "{{ {'a': {'b': 1}} }}", "{{ {'a': 1}}}", "{{{'a': 1}['a']}}", "{{ 1 }", "{{ 'a }}", "{% if %}{% endif %}", "{{ }}", "{{ 1 2 }}", "{# x", "}} %}", "{{ a.b",
    "{{ 'a' 'b' \"c\" }}", "{{ '\\x41\\u00e9\\U0001F600\\101\\0' }}", "{{ '\\a\\b\\f\\v\\t'|length }}", "{{ '\\q\\/\\d' }}", "{{ '\\N{BULLET}' }}", "{{ '\\xzz' }}", "{{ '\\u12' }}", "{{ '\\é' }}", "{{ 'a\\\nb' }}", "{{ '\\ud83d' }}", "{{ \"it's\" ~ 'a \"b\"' }}", "{{ '\\'' }}",
    "{{ 1_000 }}{{ 0x1F }}{{ 0b11 }}{{ 0o17 }}{{ 1e3 }}{{ 1.5e-3 }}{{ 1_0.5_0 }}{{ 00 }}", "{{ 012 }}", "{{ 1. }}", "{{ .5 }}", "{{ 1.e5 }}", "{{ 1e }}", "{{ 1__0 }}", "{{ 1a }}", "{{ 123456789012345678901234567890 }}",
    "{% for x in [1, 2, 3] %}{{ x }}{% else %}n{% endfor %}", "{% for x in [] %}{{ x }}{% else %}n{% endfor %}", "{% for x in 'añ' %}[{{ x }}]{% endfor %}", "{% for x in {'a': 1, 'b': 2} %}{{ x }}{% endfor %}", "{% for x in nothing %}x{% endfor %}", "{% for x in none %}x{% endfor %}", "{% for x in 5 %}x{% endfor %}",
    "{% for a, b in {'x': 1}.items() %}{{ a }}{{ b }}{% endfor %}", "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for a, b in ['xy'] %}{{ b }}{{ a }}{% endfor %}", "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, in [(1,)] %}{{ a }}{% endfor %}", "{% for x in 1, 2 %}{{ x }}{% endfor %}",
    "{% for x in [1, 2, 3, 4] if x is odd %}{{ loop.index }}/{{ loop.length }}{{ x }}{{ loop.last }}{% else %}n{% endfor %}", "{% for x in [1] if x > 1 %}{% else %}n{% endfor %}", "{% for x in [1, 2] if loop is defined %}{{ x }}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in [1, 2, 3] if not ns.stop %}{{ x }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}", "{% set ns = namespace(n=0) %}{% for x in [1, 2, 3] if x > ns.n %}{{ loop.last }}{{ x }}{% set ns.n = 2 %}{% endfor %}",
    "{% for x in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.changed(x // 2) }};{% endfor %}",
    "{% for x in [1] %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{{ loop.x }}{{ loop['index'] }}{{ loop|length }}{% endfor %}", "{% for x in [1] %}{{ loop }}{% endfor %}", "{% for x in [1, 2] %}{% for y in [3] %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}{{ loop }}", "{% for x in [1, 2] %}{% set outer = loop %}{% for y in [3] %}{{ outer.index }}{% endfor %}{% endfor %}",
    "{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% else %}n{% endfor %}", "{% break %}", "{% for x in [1] %}{% break %}{% else %}n{% endfor %}", "{% for x in [1, 2] %}{% for y in [1, 2] %}{% break %}{% endfor %}{{ x }}{% endfor %}", "{% for x in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% for x in [[1, [2]], [3]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}", "{% for x in [1] %}{{ loop([1]) }}{% endfor %}", "{% for loop in [1] %}{% endfor %}", "{% for x in [1, 2] recursive if x %}{% endfor %}", "{% for x in [1, 2] if x recursive %}{{ x }}{% endfor %}", "{% for x.y in [1] %}{% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}", "{% for i in [1, 2] %}{{ y }}{% set y = i %}{% endfor %}[{{ y }}]", "{% if true %}{% set x = 1 %}{% endif %}{{ x }}", "{% if false %}{% set bos_token = 1 %}{% endif %}{{ bos_token }}", "{{ bos_token }}{% set bos_token = 'q' %}{{ bos_token }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set a, b = [1] %}",
    "{% set x %} a {{ 1 }} {% endset %}[{{ x }}]", "{% set x | upper | trim %} a {% endset %}[{{ x }}]", "{% set x %}{% set y = 1 %}{% endset %}[{{ y }}]", "{% set x.y = 1 %}", "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}", "{% set d = {} %}{% set d.a = 1 %}", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}", "{% set ns = namespace(items=3) %}{{ ns.items }}", "{% set none = 1 %}", "{% set x %}{% endset %}[{{ x is string }}]", "{{ namespace(a=1) is defined }}{{ namespace(a=1) is mapping }}{{ namespace() is iterable }}",
    "{% with a=1, b=a %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% set a = 5 %}{% with a=1, b=a %}{{ b }}{% endwith %}", "{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z }}", "{% with a, b = (1, 2) %}{{ b }}{% endwith %}",
    "{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=4, a=5) }}{{ f() }}", "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", "{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}", "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, x=2) }}", "{% macro f(a, b=a) %}{{ b }}{% endmacro %}{{ f(3) }}", "{% set a = 9 %}{% macro f(a=a) %}{{ a }}{% endmacro %}[{{ f() }}]", "{% macro f(a=1, b) %}{% endmacro %}",
    "{% macro f() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ f() }}{% set x = 2 %}{{ f() }}", "{% macro f() %}{% set x = 5 %}{{ x }}{% endmacro %}{% set x = 1 %}{{ f() }}{{ x }}", "{% for i in [1] %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}{{ f is defined }}", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}b{% endmacro %}{{ a() }}", "{{ f() }}{% macro f() %}{% endmacro %}",
    "{% macro f(x) %}<{{ x }}{{ caller() }}>{% endmacro %}{% call f(1) %}in{% endcall %}", "{% macro f() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=3) f() %}{{ a }}{{ b }}{% endcall %}", "{% macro f() %}x{% endmacro %}{% call f() %}{% endcall %}", "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}", "{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}", "{% call 1 %}{% endcall %}", "{% macro f(a, b=1) %}{{ varargs }}{% endmacro %}{{ f.name }}{{ f.arguments }}{{ f.catch_varargs }}{{ f.catch_kwargs }}{{ f.caller }}", "{% macro f() %}  a\n{% endmacro %}[{{ f() }}]{{ f()|trim }}{{ f() is string }}", "{% macro f() %}a{% endmacro %}{{ f }}", "{% macro f(*a) %}{% endmacro %}",
    "{% set x = messages|length %}{{ x }}", "{% if (messages|first).role == 'system' %}y{% endif %}",
    "{% filter upper %}a{{ 'b' }}{% endfilter %}", "{% filter trim|replace('a', 'b') %} a {% endfilter %}", "{% filter nosuch %}{% endfilter %}", "{% set a, = [1] %}{{ a }}", "{% for x in [1] %}{% continue %}{% else %}n{% endfor %}", "{% for x in [1, 2] %}{% if x == 1 %}{% continue %}{% endif %}{% else %}n{% endfor %}", "{% set (a, b) = (1, 2) %}{{ a }}", "{% set (a) = 1 %}{{ a }}", "{% for x in [1] %}{% for y in [] %}{% else %}{% break %}{% endfor %}x{% endfor %}", "{% print 1, 'a' %}", "{% print %}", "{% include 'x' %}", "{% include 'x' ignore missing %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}", "{% block b %}x{% endblock %}", "{% autoescape true %}{{ '<' }}{% endautoescape %}", "{% do x %}", "{% nosuch %}", "{% endif %}", "{% if 1 %}", "{% trans %}x{% endtrans %}", "{% debug %}", "{{ self }}", "{{ super() }}", "{{ loop }}",
    "{% generation %}a{% endgeneration %}", "{% generation %}{% set x = 1 %}{% endgeneration %}[{{ x }}]", "{% for x in [1] %}{% generation %}{{ x }}{% endgeneration %}{% endfor %}", "{% for x in [1] %}{% generation %}{% break %}{% endgeneration %}{% endfor %}", "{%- generation -%}  a  {%- endgeneration -%}  b",
    "{% if 0 %}a{% elif '' %}b{% elif [] %}c{% elif none %}d{% elif nothing %}e{% else %}f{% endif %}", "{% if 1 %}{% else %}{% else %}{% endif %}", "{% if [0] and 'a' %}y{% endif %}", "{% if messages|selectattr('role', 'equalto', 'x') %}y{% else %}n{% endif %}", "{% if range(0) %}y{% else %}n{% endif %}", "{% if namespace() %}y{% endif %}", "{% if 1, 0 %}y{% endif %}", "{% if {}.items() %}y{% else %}n{% endif %}",
    "{{ 1 if true }}[{{ 1 if false }}]{{ (1 if false) is defined }}", "{{ 1 if false else 2 if false else 3 }}", "{{ (1 if false).x }}", "{{ 1 if 0 if 1 else 2 }}", "{{ not not 1 }}{{ not 1 == 2 }}{{ 1 == 1 and not 0 }}", "{{ 1 or x.y }}{{ 0 and x.y }}", "{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 3 > 2 >= 2 != 1 }}", "{{ 1 < 2 > x.y }}", "{{ 'a' in 'abc' in ['abc'] }}", "{{ 1 in [1] == true }}",
    "{{ -3|abs }}{{ -2 ** 2 }}{{ 2 ** -1 }}{{ 2 ** 3 ** 2 }}{{ - - 1 }}{{ +1 }}{{ -1.5|int }}{{ not 1|abs }}", "{{ 1 + 2 ~ 3 + 4 }}", "{{ 1 ~ 2 * 3 }}", "{{ 'a' ~ 'b' | upper }}", "{{ ('a' ~ 'b') | upper }}", "{{ 1 - 1 ~ 1 }}", "{{ [1, 2][0] + 1 }}", "{{ messages[0].role[0] }}", "{{ messages[0]['role']|upper|lower }}", "{{ messages.0.role }}", "{{ [1, 2].0 }}", "{{ 'abc'|first|upper }}", "{{ ['a'].0|upper ~ 'x' }}", "{{ (1, 2)[1] }}", "{{ (1,) }}", "{{ () }}", "{{ 1, 2 }}", "{{ [1, ] }}", "{{ [,] }}", "{{ {'a': 1, } }}", "{{ {1: 2, true: 3, 1.0: 4} }}", "{{ {[]: 1} }}", "{{ {(1, 2): 3}[(1, 2)] }}", "{{ {'a': 1, 'a': 2} }}", "{{ {none: 1} }}",
    "{{ x is defined and x }}{{ x is not defined }}{{ x is undefined }}{{ not x is defined }}", "{{ 1 is odd is even }}", "{{ 3 is divisibleby(3) }}{{ 3 is divisibleby 2 }}{{ 3 is not divisibleby 2 }}", "{{ 1 is nosuch }}", "{% if false %}{{ 1 is nosuch }}{% endif %}", "{% if true %}{{ 1|nosuch }}{% endif %}", "{% if false %}{{ 1|nosuch }}{% endif %}ok", "{{ 1|nosuch if false else 2 }}", "{% for x in [] %}{{ 1|nosuch }}{% endfor %}", "{% if false %}{% for x in [] %}{{ 1|nosuch }}{% endfor %}{% endif %}", "{{ 1 is string or 2 is number }}", "{{ 'a' is in ['a'] }}", "{{ 1 is eq 1 }}{{ 1 is lt 2 and 2 is gt 1 }}", "{{ 'upper' is filter }}{{ 'nosuch' is filter }}{{ 'odd' is test }}{{ 1 is filter }}", "{{ 1 is sameas 1 }}", "{{ [] is sameas [] }}", "{{ true is sameas true }}{{ none is sameas none }}", "{{ 1 is not string }}", "{{ 1 is integer if true else 0 }}",
    "{{ nothing }}{{ nothing ~ 'a' }}{{ nothing|length }}{{ nothing == nothing }}{{ nothing == none }}{{ nothing != 1 }}", "{{ nothing.x }}", "{{ nothing['x'] }}", "{{ nothing() }}", "{{ nothing + 1 }}", "{{ 'a' + nothing }}", "{{ nothing < 1 }}", "{{ 1 in nothing }}", "{{ nothing in [1] }}", "{{ nothing in 'abc' }}", "{{ nothing in {} }}", "{{ -nothing }}", "{{ nothing[1:] }}", "{{ nothing * 2 }}", "{{ [nothing] }}", "{{ {'a': nothing} }}", "{{ messages[0].nope }}[{{ messages[9] }}]{{ messages['x'] }}{{ none.x }}{{ 1 .x }}", "{{ messages[9].x }}", "{{ none.x.y }}", "{{ (5).x }}{{ 'a'.x }}{{ [].x }}", "{{ messages[1.0] }}{{ messages[none] }}{{ messages[true].role }}", "{{ {}[[]] }}", "{{ messages[0][0] }}",
    "{{ messages[0].items }}", "{{ messages[0].items() }}", "{{ messages[0].keys()|list }}{{ messages[0].values()|list|length }}", "{{ {'items': 1}.items is callable }}{{ {'items': 1}['items'] }}{{ {}['items'] is callable }}", "{{ {'a': 1}.items()[0] }}", "{{ {'a': 1}.keys() == ['a'] }}", "{{ 'a' in {'a': 1}.keys() }}{{ 1 in {'a': 1}.values() }}{{ ('a', 1) in {'a': 1}.items() }}", "{{ {'a': 1}.items()|length }}{{ {'a': 1}.keys()|first }}{{ {'a': 1}.values()|last }}", "{{ 'abc'['upper']() }}", "{{ 'a'.__class__ }}", "{{ messages[0].__class__ }}", "{{ {'_x': 1}._x }}{{ {'__y': 2}['__y'] }}", "{{ 'x'.upper is callable }}{{ 'x'.upper is defined }}{{ [].append is defined }}", "{{ [].append(1) }}", "{{ {}.update({}) }}", "{{ 'a'.upper }}",
    "{{ range(3) }}{{ range(1, 7, 2) }}{{ range(3)|list }}{{ range(3)[1] }}{{ range(3)[-1] }}{{ range(5)[1:3] }}{{ range(5)[::-1]|list }}{{ 2 in range(3) }}{{ range(3)|length }}", "{{ range(1.5) }}", "{{ range(0, 1, 0) }}", "{{ range(100001)|length }}", "{{ range(true)|list }}", "{{ range() }}", "{{ range(5, 0, -2)|list }}{{ range(0) == range(5, 5) }}", "{{ dict(a=1) }}{{ dict({'b': 2}, a=1) }}{{ dict([('x', 1)]) }}{{ dict() }}", "{{ dict(1) }}", "{{ lipsum is defined }}{{ lipsum is callable }}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.current }}", "{{ cycler() }}", "{% set j = joiner() %}{{ j() }}{{ j() }}{{ j() }}", "{% set j = joiner('; ') %}{{ j() }}a{{ j() }}", "{{ raise_exception('x') }}", "{{ raise_exception() }}", "{{ strftime_now('%Y') is string }}", "{{ range.x }}{{ range is callable }}{{ dict is mapping }}", "{{ tools }}{{ documents }}{{ add_generation_prompt }}{{ eos_token }}", "{{ debug }}{{ zip is defined }}{{ enumerate is defined }}",
    "{{ [1, 2]|map('string')|join }}{{ messages|map(attribute='role')|list }}", "{% set g = messages|map(attribute='role') %}{{ g|list }}{{ g|list }}", "{{ messages|map(attribute='role')|length }}", "{{ (messages|map(attribute='role'))[0] }}", "{{ messages|map(attribute='role') }}", "{{ messages|map(attribute='role')|first }}", "{{ messages|map(attribute='role')|last }}", "{{ 'user' in messages|map(attribute='role') }}", "{% for r in messages|map(attribute='role') %}{{ loop.index }}{{ r }}{{ loop.last }}{% endfor %}", "{{ [[1, 2], [3]]|sum(start=[]) }}", "{{ [0.1, 0.2]|sum }}", "{{ ['a']|sum }}", "{{ [true, 2]|sum }}", "{{ messages|groupby('role')|map(attribute='grouper')|list }}", "{{ (messages|groupby('role'))[0].list|length }}", "{% for g, l in messages|groupby('role') %}{{ g }}{{ l|length }}{% endfor %}", "{{ messages|selectattr('content', 'string')|map(attribute='role')|join(',') }}", "{{ [{'a': {'b': 1}}]|map(attribute='a.b')|list }}{{ [[1, 2]]|map(attribute='1')|list }}", "{{ [3, 1, 2]|sort|first }}{{ ['b', 'A', 'c']|sort }}{{ ['b', 'A']|sort(case_sensitive=true) }}", "{{ [1, none]|sort }}", "{{ [(2, 'a'), (1, 'b')]|sort }}", "{{ [2, 1, 2]|unique|list }}{{ ['a', 'A']|unique|list }}",
    "{{ f(*[1, 2]) if false }}{{ dict(**{'a': 1}) }}{{ range(*[1, 4])|list }}", "{{ range(*1) }}", "{{ dict(**1) }}", "{{ dict(a=1, **{'a': 2}) }}", "{{ dict(a=1, a=2) }}", "{{ dict(a=1, 2) }}", "{{ 'a'.upper(1) }}", "{{ 'a,b'.split(sep=',') }}{{ 'a'.replace('a', new='b') }}", "{{ 'x'.join(messages|map(attribute='role')) }}", "{{ 'abc'.center(width=9) }}",
    "{{ '<a>' ~ ('<b>'|safe) }}{{ ('<b>'|safe) ~ '<a>' }}", "{{ ('<b>'|safe) + '<a>' }}", "{{ '<a>'|e }}{{ '<a>'|e|e }}{{ '<a>'|e|forceescape }}", "{{ ('<b>'|safe) is string }}{{ ('<b>'|safe)|length }}{{ ('<b>'|safe) == '<b>' }}{{ ('<b>'|safe) is escaped }}", "{{ {'a': '<b>'|safe}|tojson }}", "{{ [('<b>'|safe)] }}", "{{ ('a'|safe).upper() }}", "{{ ('%s'|safe) % '<' }}",
    "{{ 7 // 2 }}{{ -7 // 2 }}{{ 7 % -3 }}{{ -7 % 3 }}{{ 7.5 // 2 }}{{ -7.5 % 2 }}{{ 1e308 * 10 }}{{ -0.0 }}{{ 0.1 + 0.2 }}{{ 1 / 3 }}{{ 4 / 2 }}{{ 2 ** 0.5 }}{{ 2 ** 100 }}{{ 10 ** -2 }}", "{{ 1 / 0 }}", "{{ 1 % 0 }}", "{{ 1.0 // 0 }}", "{{ true + true }}{{ true * 3 }}{{ -true }}{{ true == 1 }}{{ true < 2 }}{{ 1 == 1.0 }}{{ 'a' == 1 }}", "{{ 'a' * 3 }}{{ 3 * 'a' }}{{ 'a' * -1 }}{{ [1] * 2 }}{{ 'a' * true }}", "{{ 'a' + 1 }}", "{{ [1] + (2,) }}", "{{ 'a' - 'b' }}", "{{ 1 < 'a' }}", "{{ none < 1 }}", "{{ [1, 2] < [1, 3] }}{{ (1,) < (1, 2) }}{{ 'a' < 'b' }}{{ 'Z' < 'a' }}{{ [1] == [1.0] }}{{ {'a': 1} == {'a': 1.0} }}", "{{ {} < {} }}", "{{ 1 in 1 }}", "{{ 1 in 'a' }}", "{{ 1.0 in [1] }}{{ true in [1] }}{{ none in [none] }}{{ 'a' in ('a',) }}{{ 'x' not in {'x': 1} }}", "{{ [] in {} }}", "{{ 9007199254740993 == 9007199254740992.0 }}{{ 1e400 > 10 ** 30 }}", "{{ (-8) ** 0.5 }}", "{{ 0 ** -1 }}", "{{ 5 / 2 * 2 }}{{ 5 - 2 - 1 }}{{ 2 * 3 % 4 }}{{ 100 // 7 // 2 }}",
    "{{ 1e16 }}{{ 1e15 }}{{ 1e-5 }}{{ 0.0001 }}{{ 123456789.123 }}{{ 1e22 }}{{ 5e-324 }}{{ 1e400 }}{{ -1e400 }}", "{{ 'a\\tb\\'\"\\\\\\x00\\x7f\\xa0é'|list }}", "{{ ['\\u200b', '\\U0001F600', '\\ue000'] }}", "{{ [1, 'a', none, true, 1.5, (1,), {'k': []}] }}", "{{ [range(2), range] }}", "{{ 'x' ~ [1] ~ {} ~ none ~ 1.0 ~ true ~ () }}",
]  # fmt: skip


# White space at a template's end, and names that an inner scope reads before an outer one sets them.
ENDS = [
    "a\n ", "a\n   \n ", "  ", " \t", "{% if x %}{% endif %}\n   ", "{{ 1 }}\n  ", "a {# c #}\n\t", "{% if true %}\n  {% endif %}  ", "x\n {% raw %}\n {% endraw %}\n ", "{%- if true -%} a {%- endif -%} \n ",
    "{% for m in messages %}{% if tools is defined %}T{% endif %}{% endfor %}{% set tools = 1 %}", "{% macro m() %}[{{ bos_token }}]{% endmacro %}{{ m() }}{% set bos_token = 2 %}{{ m() }}",
    "{% macro m() %}[{{ bos_token }}]{% endmacro %}{{ m() }}{% if true %}{% set bos_token = 2 %}{% endif %}{{ m() }}", "{{ bos_token }}{% macro m() %}[{{ bos_token }}]{% endmacro %}{{ m() }}{% set bos_token = 2 %}{{ m() }}",
    "{% with a=bos_token %}{{ a }}{{ eos_token }}{% endwith %}{% set eos_token = 1 %}", "{% set x %}{{ bos_token }}{% endset %}{{ x }}{% set bos_token = 1 %}", "{% filter upper %}{{ bos_token }}{% endfilter %}{% set bos_token = 1 %}",
    "{% for m in messages if bos_token %}x{% endfor %}{% set bos_token = 1 %}", "{% for m in [1] %}{% for n in [1] %}{{ bos_token }}{% endfor %}{% set bos_token = 2 %}{% for n in [1] %}{{ bos_token }}{% endfor %}{% endfor %}{{ bos_token }}",
    "{% for m in [] %}{% else %}{{ bos_token }}{% endfor %}{% set bos_token = 1 %}", "{% macro m(a=bos_token) %}{{ a }}{% endmacro %}{{ m() }}{% set bos_token = 1 %}", "{% for m in [1] %}{{ range is defined }}{% endfor %}{% macro range() %}{% endmacro %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{{ bos_token }}{% endcall %}{% set bos_token = 1 %}", "{% generation %}{{ bos_token }}{% endgeneration %}{% set bos_token = 1 %}", "{% for m in [1] %}{{ bos_token.x }}{% endfor %}{% set bos_token = 1 %}",
    "{% if false %}{% elif bos_token %}{% for m in [1] %}{{ bos_token }}{% endfor %}{% endif %}{% set bos_token = 1 %}", "{% for m in [1] %}{{ bos_token }}{% endfor %}{% set x, bos_token = 1, 2 %}", "{% for m in [1] %}{{ bos_token }}{% endfor %}{% set bos_token %}{% endset %}",
    "{% for m in [1] %}{{ ns.a }}{% endfor %}{% set ns = namespace(a=1) %}", "{% macro m() %}{% set bos_token = bos_token ~ 1 %}{{ bos_token }}{% endmacro %}{{ m() }}{% set bos_token = 2 %}{{ m() }}",
]  # fmt: skip

# Where numbers, letters and loops of Rust are not Python's: {} is the value.
LETTERS = ["'ΟΔΟΣ ΑΣ.'", "'Οδός Σ'", "'aǅb'", "'ǅ'", "'straße ﬁn'", "'ʕ•ᴥ•ʔ'", "'Ⓐ b'", "'ⅷ Ⅷ'", "'ჼ'", "'ɤƛ'", "'日本語'", "'3一'", "'½²'", "'١٢'", "'عربي كلمة'", "'हिन्दी'", "'Ω՞Ა'", "'🫨'", "'ꟑ'", "'İI'", "'e\\u0301f'", "'ʰa'", "'\\u0345'"]
OF_LETTERS = ["{}.swapcase()", "{}.title()", "{}|title", "{}|capitalize", "{}.upper()", "{}|lower", "{}.islower()", "{} is upper", "{}.istitle()", "{}|wordcount", "{}.isalpha()", "{}.isalnum()", "{}.isdigit()", "{}.isdecimal()", "{}.isnumeric()", "{}.isprintable()", "[{}]", "{}.casefold()", "{}.isidentifier()", "[{}, 'B', 'a']|sort", "[{}, 'ά', 'Ά']|unique|list"]
NUMBERS = ["'1_e5'", "'i_nf'", "'1_0'", "'1__0'", "'_1'", "'1_'", "'1_0.5_0e1_0'", "'1\\x1c'", "'\\x1f1'", "' \\u20031\\u3000\\n'", "'0x_1f'", "'0_x1f'", "'f_f'", "'0b1_1'", "'inf'", "'-Infinity'", "'nan'", "'1e400'", "'１２'", "'5€'", "('inf'|float)", "('nan'|float)", "1e400", "'1_0'|float", "'+ 1'", "'- 1'", "'0x'", "''"]
OF_NUMBERS = ["{}|float(7)", "{}|int(7)", "{}|int(7, 16)", "{}|int(7, 2)", "{}|filesizeformat", "{}|round", "{{{}: 1}}[{}]"]
EDGES = [
    "{% generation %}[{{ varargs }}{{ kwargs }}]{% endgeneration %}", "{% generation %}{{ caller is defined }}{% endgeneration %}", "{% generation %}{{ caller() }}{% endgeneration %}", "{% macro m() %}{% generation %}{{ varargs }}{{ kwargs }}{% endgeneration %}{% endmacro %}{{ m(1) }}",
    "{% set x = 1 %}{% generation %}{{ x }}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}", "{% generation %}{% macro m() %}{{ bos_token }}{% endmacro %}{{ m() }}{% set bos_token = 5 %}{{ m() }}{% endgeneration %}", "{% for x in [1, 2] %}{% generation %}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{% for x in [1] %}{% set loop = 1 %}{% endfor %}", "{% for x in [] %}{% else %}{% set loop = 1 %}{% endfor %}", "{% for x in [1] %}{% macro m() %}{% set loop = 1 %}{% endmacro %}{% endfor %}", "{% for x in [1] %}{% set loop %}a{% endset %}{% endfor %}", "{% for x in [1] %}{% set a, loop = 1, 2 %}{% endfor %}", "{% set loop = 1 %}{{ loop }}{% for x in [1] %}{{ x }}{% endfor %}{% set loop = 2 %}{{ loop }}",
    "{% for x in [1] %}{% with loop=3 %}{{ loop }}{% endwith %}{% endfor %}", "{% if false %}{% for x in [1] %}{% if false %}{% set loop = 1 %}{% endif %}{% endfor %}{% endif %}",
    "{% for x in [1] recursive %}{% else %}{% continue %}{% endfor %}", "{% for i in [1] %}{% for x in [] recursive %}{% else %}{% break %}{% endfor %}a{% endfor %}", "{% for i in [1, 2] %}{% for x in [] %}{% else %}{% continue %}{% endfor %}a{% endfor %}", "{% for x in [1, 2] recursive %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% else %}e{% endfor %}",
    "a {#", "a {#-", "a\n  {#", "a {# ", "a {#\n", "a {% raw %}", "a {%- raw -%}  ", "a {% raw %} ", "{{ none[1:] }}", "{{ 1[1:] ~ 'a' }}",
    "{% for i in [1, 2, 3] %}a{% set x %}b{% if i == 2 %}{% break %}{% endif %}c{% endset %}{{ x }}{% endfor %}|{{ x }}", "{% for i in [1, 2, 3] %}a{% set x | upper %}b{% if i == 2 %}{% continue %}{% endif %}c{% endset %}{{ x }}{% endfor %}|{{ x }}", "{% for i in [1, 2, 3] %}a{% filter upper %}b{% set y = i %}{% if i == 2 %}{% continue %}{% endif %}c{% endfilter %}{{ y }}{% endfor %}",
    "{% for i in [1, 2, 3] recursive %}a{% filter upper %}b{% if i == 2 %}{% break %}{% endif %}c{% endfilter %}{% endfor %}", "{% macro m() %}{% for i in [1, 2, 3] %}a{% set x %}b{% filter upper %}c{% if i == 2 %}{% continue %}{% endif %}d{% endfilter %}{% endset %}{{ x }}{% endfor %}{% endmacro %}{{ m() }}", "{% for i in [1] %}a{% set x %}b{% continue %}{% endset %}{% else %}e{{ x }}{% endfor %}",
    "{{ [2, 1]|sort(reverse='x') }}", "{{ [2, 1]|sort(reverse=none) }}", "{{ [2, 1]|sort(reverse=2) }}", "{{ [2, 1]|sort(reverse=0) }}", "{{ [2, 1]|sort(reverse=1.0) }}", "{{ [2, 1]|sort(reverse=4294967296) }}", "{{ {'a': 1}|dictsort(reverse='role') }}", "{{ {'a': 1, 'b': 2}|dictsort(reverse=1) }}",
    "{{ '{:d} {:5} {:x} {:.1f} {:%} {:,} {:>6} {}'.format(true, true, true, true, false, true, false, true) }}", "{{ '{:s}'.format(true) }}", "{{ '{:.2}'.format(true) }}", "{{ '{!s:>6}'.format(true) }}",
    "{{ [1, 2]|truncate }}", "{{ [1, 2]|truncate(1, leeway=0, end='') }}", "{{ {'a': 1}|truncate(9) }}", "{{ 12|truncate }}", "{{ range(9)|truncate(3) }}", "{{ nothing|truncate }}", "{{ ('<b>'|safe)|truncate(9) }}", "{{ none|truncate }}",
    "{{ 'añb'[0] }}{{ 'añb'[1] }}{{ 'añb'[2] }}{{ 'añb'[-1] }}{{ 'añb'[-2] }}{{ 'añb'[-3] }}[{{ 'añb'[3] }}{{ 'añb'[-4] }}{{ 'añb'[99] }}{{ ''[0] }}]", "{{ 'añb日c'[1:3] }}{{ 'añb日c'[-2:] }}{{ 'añb日c'[:-1] }}{{ 'añb日c'[3:1] }}{{ 'añb日c'[::2] }}{{ 'añb日c'[::-1] }}",
    "{{ {1: 'a', 1.0: 'b', true: 'c'} }}{{ {1: 'a'}[true] }}{{ {0.5: 'a'}[0.5] }}{{ {-0.0: 'a'}[0] }}{{ {none: 'a'}[none] }}{{ {(1, 'x'): 'a'}[(1.0, 'x')] }}{{ {'1': 'a'}[1] }}{{ {'a'|safe: 1}['a'] }}", "{{ [1, 1.0, true, '1', none, none, (1,), (1.0,), 'a', 'A', 0.5, 0.5]|unique|list }}", "{{ {1e300: 'a', 170141183460469231731687303715884105727: 'b'}|length }}", "{{ [[1]]|unique|list }}", "{{ {[1]: 1} }}", "{{ {(1, [2]): 1} }}",
    "{{ dict(**{'a': 1, 'b': 2}) }}", "{{ dict(b=1, **{'a': 1, 'b': 2}) }}",
]  # fmt: skip

# Lists of numbers and texts, longer than what sorts treat by hand.
MIXED = [[str(i * 37 % 101) if i * 7 % 3 == 0 else i * 37 % 101 for i in range(count)] for count in (2, 3, 21, 33, 64)]


def scopes(count):
    """Templates of scopes that set and read three variables of the rendering and one that is none."""
    random = Random(59)
    names = ["bos_token", "eos_token", "tools", "own"]

    def name():
        return random.choice(names)

    def body(depth):
        return "".join(statement(depth) for _ in range(random.randint(1, 3)))

    def statement(depth):
        kind = random.choice(["read", "read", "set"] if depth == 0 else ["read", "set", "for", "if", "with", "macro", "filter", "block", "call"])
        if kind == "read":
            return random.choice(["[{{ %s }}]", "{%% if %s is defined %%}D{%% endif %%}", "{{ %s|length }}"]) % name()
        if kind == "set":
            return "{%% set %s = %s %%}" % (name(), random.choice(["'1'", "'q'", "'x' ~ " + name()]))
        if kind == "for":
            return "{%% for %s in ['u', 'v'] %%}%s{%% else %%}%s{%% endfor %%}" % (random.choice(["m", name()]), body(depth - 1), body(depth - 1))
        if kind == "if":
            return "{%% if %s %%}%s{%% elif 1 %%}%s{%% else %%}%s{%% endif %%}" % (name(), body(depth - 1), body(depth - 1), body(depth - 1))
        if kind == "with":
            return "{%% with %s=%s %%}%s{%% endwith %%}" % (random.choice(["w", name()]), name(), body(depth - 1))
        if kind == "macro":
            return "{%% macro f(a=%s) %%}{{ a }}%s{%% endmacro %%}{{ f() }}" % (name(), body(depth - 1))
        if kind == "filter":
            return "{%% filter upper %%}%s{%% endfilter %%}" % body(depth - 1)
        if kind == "block":
            return "{%% set %s %%}%s{%% endset %%}" % (name(), body(depth - 1))
        return "{%% macro g() %%}{{ caller() }}{%% endmacro %%}{%% call g() %%}%s{%% endcall %%}" % body(depth - 1)

    for _ in range(count):
        yield body(2) + "{% set " + name() + " = 'z' %}" + body(1)


def snippets():
    for name in sorted(jinja2.defaults.DEFAULT_FILTERS.keys() | {"tojson"}):
        for value, tail in itertools.product(VALUES, FILTERS[name]):
            yield "{{ (%s)|%s%s }}" % (value, name, tail)
    for name in sorted(jinja2.defaults.DEFAULT_TESTS):
        if re.fullmatch("[a-z]+", name):
            for value, tail in itertools.product(VALUES, TESTS.get(name, [""])):
                yield "{{ (%s) is %s%s }}" % (value, name, tail)
        for value in ["[1, 2]", "['a', 'B']"]:
            for argument in ["1", "'a'", "[1]"]:
                yield "{{ %s|select('%s', %s)|list }}" % (value, name, argument)
    assert METHODS.keys() == {name for name in dir(str) if not name.startswith("_")}, METHODS.keys() ^ set(dir(str))
    for name, tails in METHODS.items():
        for text, tail in itertools.product(TEXTS, tails):
            yield "{{ %s.%s%s }}" % (text, name, tail)
    for value, methods in OTHER_METHODS.items():
        for method in methods:
            yield "{{ %s.%s }}" % (value, method)
    bounds = ["", "0", "1", "2", "-1", "-2", "9", "-9"]
    for value in ["'abc'", "[1, 2, 3]", "''", "range(3)"]:
        for start, stop, step in itertools.product(bounds, bounds, ["", "1", "-1", "2", "-2"]):
            yield "{{ %s[%s:%s:%s] }}" % (value, start, stop, step)
    for value in VALUES:
        for key in ["1:", "::0", "none:none", "'a':", "1.5:", "0", "-1", "'role'", "nothing", "[]", ":nothing"]:
            yield "{{ (%s)[%s] }}" % (value, key)
        yield "[{{ %s }}]{{ 1 if (%s) else 0 }}" % (value, value)
        yield "{%% for x in %s %%}{{ x }};{%% else %%}none{%% endfor %%}" % value
        yield "{{ (%s).role }}" % value
        yield "{{ (%s)() }}" % value
        yield "{{ [%s] }}" % value
    for left, operator, right in itertools.product(VALUES, ["+", "-", "*", "/", "//", "%", "**", "~", "==", "<", ">=", "in"], ["2", "'ab c'", "[1]", "none", "true", "0.5", "nothing"]):
        yield "{{ (%s) %s %s }}" % (left, operator, right)
    for expression in FORMATS:
        yield "{{ %s }}" % expression
    yield from STATEMENTS
    yield from ENDS
    for value, use in [*itertools.product(LETTERS, OF_LETTERS), *itertools.product(NUMBERS, OF_NUMBERS)]:
        yield "{{ %s }}" % use.format(value, value)
    yield from EDGES
    for items in MIXED:
        for tail in ["sort", "sort(reverse=true)", "map('string')|sort|join"]:
            yield "{{ %r|%s }}" % (items, tail)
        yield "{{ {%s}|dictsort }}{{ 1 }}" % ", ".join("%r: %d" % (key, i) for i, key in enumerate(dict.fromkeys(items)))
        yield "{{ {%s}|tojson(sort_keys=true) }}" % ", ".join("%r: %d" % (key, i) for i, key in enumerate(dict.fromkeys(items)))
        yield "{{ %r|groupby('x')|length }}" % [{"x": item} for item in items]
    yield from scopes(600)


def render(template):
    try:
        return _compile_jinja_template(template).render(
            # The filter `indent` adds to a list in place.
            messages=copy.deepcopy(MESSAGES),
            tools=None,
            documents=None,
            add_generation_prompt=True,
            bos_token="<s>",
            eos_token="</s>",
        )
    except Exception:
        return None


cases = []
for template in dict.fromkeys(snippets()):
    texts = {render(template), render(template)}
    # An address in memory is another one each time.
    if len(texts) == 1 and not re.search(" at 0x[0-9a-f]+", str(*texts)):
        try:
            json.dumps([template, *texts], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            continue
        cases.append([template, *texts])
path = Path(__file__).parents[2] / "crates/judge-jinja/tests/fixtures/jinja.json"
head = {"transformers": transformers.__version__, "jinja2": jinja2.__version__, "messages": MESSAGES}
lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
path.write_text(json.dumps(head, ensure_ascii=False)[:-1] + ', "cases": [\n' + lines + "\n]}\n")
print(len(cases), "cases,", sum(text is None for _, text in cases), "of them errors,", path.stat().st_size, "bytes")
