"""Renders templates of our own with transformers, for crates/judge-jinja/src/tests.rs.

    python scripts/templates/make_template_fixtures.py

Each template shows one construct that published chat templates use, or several together. The published templates
themselves are not here. Made with transformers 5.23.0 and jinja2 3.1.6.
"""

import datetime
import json
from pathlib import Path

import jinja2
import transformers
from transformers.utils.chat_template_utils import _compile_jinja_template

assert transformers.__version__ == "5.23.0", transformers.__version__
assert jinja2.__version__ == "3.1.6", jinja2.__version__

# transformers asks the clock; a score must not depend on the day, so ours is told this one.
NOW = datetime.datetime(2025, 1, 1)

TURN = [{"role": "user", "content": "  Is 2 < 3 & 'x' > \"y\"? é 😀  "}]
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "One\ntwo,three"},
    {"role": "assistant", "content": "<think>hm</think> Yes. 4/5"},
    {"role": "user", "content": ""},
]
CONVERSATIONS = {"turn": TURN, "talk": TALK, "none": []}

TEMPLATES = {
    "plain": "{% for m in messages %}<{{ m['role'] }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<a>{% endif %}",
    "trim blocks": "{% for m in messages %}\n{{ m.role }}\n  {% if loop.last %}\nlast\n  {% endif %}\n{% endfor %}\nend\n",
    "whitespace control": "{%- for m in messages -%}\n   {{- m.role -}}   \n {%- endfor %}  tail  {#- gone -#}  .",
    "loop variables": "{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.cycle('a', 'b') }}{% if loop.previtem is defined %}{{ loop.previtem.role }}{% endif %};{% endfor %}",
    "break and continue": "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.role }}{% if loop.index > 1 %}{% break %}{% endif %}{% endfor %}",
    "else of a loop": "{% for m in messages %}{{ m.role }}{% else %}nobody{% endfor %}",
    "filtered loop": "{% for m in messages if m.role != 'system' %}{{ loop.index }}{{ m.role }} {% endfor %}",
    "recursive loop": "{% for n in [{'v': 1, 'k': [{'v': 2, 'k': []}, {'v': 3, 'k': [{'v': 4, 'k': []}]}]}] recursive %}{{ n.v }}{% if n.k %}({{ loop(n.k) }}){% endif %}{% endfor %}",
    "namespace": "{% set ns = namespace(n=0, last='-') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set ns.last = m.role %}{% endfor %}{{ ns.n }}{{ ns.last }}",
    "scopes": "{% set x = 1 %}{% for m in messages %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}",
    "set block": "{% set text %}a{{ messages|length }}b{% endset %}[{{ text }}]",
    "macro": "{% macro turn(m, open='<', close='>') %}{{ open }}{{ m.role }}{{ close }}{% endmacro %}{% for m in messages %}{{ turn(m) }}{{ turn(m, close='|') }}{% endfor %}",
    "tests": "{{ messages is iterable }}{{ messages is sequence }}{{ messages is mapping }}{{ 'a' is string }}{{ 1 is number }}{{ 1 is integer }}{{ 1.5 is float }}{{ true is boolean }}{{ none is none }}{{ x is defined }}{{ x is undefined }}{{ 6 is divisibleby 3 }}{{ 3 is odd }}{{ 'a' in 'cat' }}{{ 'z' not in 'cat' }}{{ 2 in [1, 2] }}{{ 'k' in {'k': 1} }}",
    "slices": "{{ messages[1:]|length }}{{ messages[:-1]|length }}{{ 'abcdef'[-2:] }}{{ 'abcdef'[1:5:2] }}{{ 'abc'[::-1] }}{{ 'abc'[-1] }}{% if messages %}{{ messages[-1].role }}{{ messages[0]['role'] }}{% endif %}",
    "concatenation": "{{ 'a' ~ 1 ~ true ~ none ~ 1.5 }}{{ 'a' + 'b' }}{{ [1] + [2] }}{{ 'ab' * 2 }}",
    "or and as values": "{{ none or 'x' }}{{ '' or 'y' }}{{ 'a' and 'b' }}{{ 0 and 'c' }}{{ not '' }}{{ tools or 'no tools' }}",
    "conditional expression": "{{ 'many' if messages|length > 1 else 'few' }}{{ 'x' if false }}",
    "arithmetic": "{{ 7 // 2 }}{{ -7 // 2 }}{{ 7 % 3 }}{{ -7 % 3 }}{{ 7 / 2 }}{{ 2 ** 5 }}{{ 1 - 2.5 }}{{ 3 == 3.0 }}{{ 1 < 2 <= 2 }}",
    "string methods": "{% for m in messages %}{{ m.content.strip() }}|{{ m.content.lstrip() }}|{{ m.content.rstrip('? ') }}|{{ m.content.split(',') }}|{{ m.content.split('</think>')[-1].lstrip('\\n') }}|{{ m.content.startswith('<think>') }}|{{ m.content.endswith(('5', 'f')) }}|{{ m.content.replace('e', 'E') }}|{{ m.content.upper() }}|{{ m.content.title() }}|{{ m.content.find('Y') }}|{{ m.content.count('e') }}\n{% endfor %}",
    "split with a limit": "{{ 'a-b-c-d'.split('-', 1) }}{{ ' a  b '.split() }}{{ 'a\\nb'.splitlines() }}{{ 'a-b-c'.rsplit('-', 1) }}",
    "startswith a tuple": "{{ 'hello'.startswith(('x', 'he')) }}{{ 'hello'.startswith(('x', 'y')) }}",
    "more string methods": "{{ 'abc'.isdigit() }}{{ '12'.isdigit() }}{{ 'abc'.isalpha() }}{{ 'a b'.capitalize() }}{{ 'AbC'.lower() }}{{ ', '.join(['a', 'b']) }}{{ 'x'.islower() }}{{ 'ab'.index('b') }}",
    "partition": "{{ 'a=b=c'.partition('=') }}{{ 'abc'.partition('=')[0] }}{{ 'a=b=c'.rpartition('=')[2] }}",
    "percent formatting": "{{ '%s-%d' % ('a', 3) }}{{ '%05.2f' % 3.14159 }}{{ '%s' % 'x' }}{{ '100%%: %s' % 1 }}",
    "dictionaries": "{% set d = {'a': 1, 'b': none} %}{{ d.get('a') }}{{ d.get('z', 'no') }}{{ d.items()|list }}{{ d.keys()|list }}{{ d.values()|list }}{% for k, v in d|items %}{{ k }}{{ v }}{% endfor %}{% for k, v in d|dictsort %}{{ k }}{% endfor %}{{ d }}",
    "filters": "{{ [3, 1, 2]|sort }}{{ [1, 2]|join('+') }}{{ messages|map(attribute='role')|join(',') }}{{ messages|selectattr('role', 'equalto', 'user')|list|length }}{{ messages|rejectattr('role', 'equalto', 'user')|list|length }}{{ '  x '|trim }}{{ y|default('d') }}{{ ''|default('e', true) }}{{ [1, 2, 3]|last }}{{ [1, 2]|first }}{{ 'Ab'|lower }}{{ 'ab'|upper }}{{ 'ab'|capitalize }}{{ [1, 2, 3]|sum }}{{ 'a'|string }}{{ '3'|int + 1 }}{{ 3|float }}{{ [1, 1, 2]|unique|list }}{{ [1, 2, 3]|reverse|list }}{{ 3.7|round|int }}{{ -3|abs }}",
    "groupby": "{% for role, group in messages|groupby('role') %}{{ role }}:{{ group|length }};{% endfor %}",
    "replace filter and indent": "{{ 'aXb'|replace('X', '-') }}{{ 'a\\nb'|indent(2) }}{{ 'abc'|list }}{{ 'a b'|wordcount }}",
    "length counts code points": "{{ messages|length }}{{ '😀é'|length }}{{ 'ab'|count }}",
    "range": "{{ range(3)|list }}{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}",
    "python spelling": "{{ true }}{{ false }}{{ none }}{{ True }}{{ False }}{{ None }}{{ [1, 'a', none, true, 1.0] }}{{ {'k': [1, {'x': \"it's\"}]} }}{{ ('a', 1) }}{{ [] }}{{ {} }}",
    "floats": "{{ 0.1 }} {{ 1e20 }} {{ 1e-7 }} {{ 100000.0 }} {{ 1e15 }} {{ 1e16 }} {{ 123456789.125 }} {{ 0.0001 }} {{ 0.00001 }} {{ 2.0 }} {{ 1/3 }}",
    "tojson": "{% for m in messages %}{{ m|tojson }}{{ m.content|tojson }}{% endfor %}{{ {'a': [1, 2.5, none, true], 'é': '<&>\\''}|tojson }}",
    "tojson with arguments": "{% set d = {'b': [1, {'x': 'é'}], 'a': '😀', 'e': [], 'o': {}} %}{{ d|tojson(indent=2) }}{{ d|tojson(ensure_ascii=true) }}{{ d|tojson(separators=(',', ':')) }}{{ d|tojson(sort_keys=true) }}{{ d|tojson(indent=4, sort_keys=true, ensure_ascii=False) }}",
    "tojson of floats": "{{ [0.1, 1e20, 1e-7, 100000.0, 2.0]|tojson }}",
    "raise exception": "{{ raise_exception('Only this: ' ~ messages|length) }}",
    "raise exception sometimes": "{% for m in messages %}{% if m.role == 'assistant' %}{{ raise_exception('no assistant') }}{% endif %}{{ m.role }}{% endfor %}",
    "date": "{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%Y-%m-%d') }}|{{ strftime_now('%A, %B %d, %y') }}|{{ strftime_now('%H:%M:%S %p %I %j %a %m %%') }}",
    "date guarded": "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}26 Jul 2024{% endif %}",
    "generation": "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
    "generation trimmed": "{%- for m in messages %}\n{%- generation -%} {{ m.role }} {%- endgeneration -%}\n{%- endfor %}",
    "special tokens": "{{ bos_token }}{% for m in messages %}{{ m.role }}{{ eos_token }}{% endfor %}",
    "undefined prints nothing": "[{{ nothing }}]{% if nothing %}x{% endif %}{% if nothing is defined and nothing.a %}y{% endif %}",
    "attribute of undefined": "{{ nothing.at.all }}",
    "attribute of undefined tested": "{% if nothing.at is defined %}x{% else %}y{% endif %}",
    "chained undefined tested": "{% if nothing.at.all is defined %}x{% else %}y{% endif %}",
    "absent key": "{% for m in messages %}[{{ m.name }}]{% if m.tool_calls is defined %}t{% endif %}{% if 'content' in m %}c{% endif %}{% if m.get('content') is not none %}n{% endif %}{% endfor %}",
    "content is string": "{% for m in messages %}{% if m.content is string %}{{ m.content|trim }}{% else %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}{% endfor %}",
    "thinking": "{% for m in messages %}{% set c = m.content %}{% if '</think>' in c %}{% set c = c.split('</think>')[-1].lstrip() %}{% endif %}{{ m.role }}:{{ c }}\n{% endfor %}{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}",
    "system first": "{% if messages and messages[0].role == 'system' %}{% set system = messages[0].content %}{% set rest = messages[1:] %}{% else %}{% set system = 'default' %}{% set rest = messages %}{% endif %}[{{ system }}]{% for m in rest %}{{ m.role }};{% endfor %}",
    "alternation": "{% for m in messages if m.role != 'system' %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{{ m.role }}{% endfor %}",
    "arguments": "{{ level|default('none given') }}{% if flags %}{{ flags.a }}{{ flags.list[1] }}{% endif %}{{ flags|default({})|tojson }}",
    "tools": "{% if tools is not none and tools %}tools{% else %}-{% endif %}{% if documents %}docs{% endif %}",
    "call block and filter block": "{% filter upper %}a{{ messages|length }}b{% endfilter %}",
    "raw and comments": "{% raw %}{{ not a variable }}{% endraw %}{# comment #}{{ '{{' }}",
    "line statements stay text": "# not a comment\n% not a statement\n{{ 1 }}",
    "does not compile": "{% for m in messages %}",
}

ARGS = [{}, {"enable_thinking": False, "level": 3, "flags": {"a": True, "list": [1, "é"]}}]


def render(template, messages, args):
    try:
        return {
            "text": _compile_jinja_template(template).render(
                messages=messages,
                tools=None,
                documents=None,
                add_generation_prompt=True,
                bos_token="<s>",
                eos_token="</s>",
                strftime_now=NOW.strftime,
                **args,
            )
        }
    except Exception as e:
        return {"error": type(e).__name__ + ": " + str(e)}


cases = [
    {"name": name, "template": template, "conversation": conversation, "args": args, **render(template, messages, args)}
    for name, template in TEMPLATES.items()
    for conversation, messages in CONVERSATIONS.items()
    for args in (ARGS if name in ("thinking", "arguments") else ARGS[:1])
]
path = Path(__file__).parents[2] / "crates/judge-jinja/tests/fixtures/templates.json"
path.write_text(json.dumps({"transformers": transformers.__version__, "conversations": CONVERSATIONS, "cases": cases}, indent=1, ensure_ascii=False) + "\n")
print(len(cases), "cases,", sum("error" in c for c in cases), "of them errors,", path.stat().st_size, "bytes")
