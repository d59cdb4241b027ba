"""What an independent validator says of an envelope: the stage of schemas and types, on Python's jsonschema.

Takes the published schemas and knows nothing of this crate: rules and paths are made from jsonschema's error tree.
"""
import calendar
import json
import os
import re
from collections import defaultdict
from decimal import Decimal

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema._utils import find_additional_properties
from jsonschema.validators import extend

FAMILIES = {
    'story.context': 'story-context',
    'telling.started': 'telling-event', 'telling.ended': 'telling-event', 'telling.exposed': 'telling-event',
    'link.committed': 'link-event', 'link.gate_changed': 'link-event', 'link.withdrawn': 'link-event',
    'delivery.media_available': 'delivery-media-available',
    'skill.warning.raised': 'skill-warning',
    'system.audit': 'system-audit',
}
OWN = ('story.', 'telling.', 'link.', 'delivery.', 'system.', 'skill.warning.')
NAMES = ['envelope', *dict.fromkeys(FAMILIES.values())]

formats = FormatChecker(formats=())


@formats.checks('uuid')
def is_uuid(x):
    return not isinstance(x, str) or re.fullmatch('-'.join(f'[0-9a-fA-F]{{{n}}}' for n in (8, 4, 4, 4, 12)), x) is not None


@formats.checks('date-time')
def is_date_time(x):
    if not isinstance(x, str):
        return True
    m = re.fullmatch(r'(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))', x, re.ASCII)
    if not m:
        return False
    year, month, day, hour, minute, second = map(int, m.groups()[:6])
    if not 1 <= month <= 12 or hour > 23 or minute > 59 or second > 60:
        return False
    # The calendar repeats every 400 years, and Python's has no year 0.
    if not 1 <= day <= calendar.monthrange(year % 400 + 400, month)[1]:
        return False
    offset = 0
    if m[7]:
        if int(m[8]) > 23 or int(m[9]) > 59:
            return False
        offset = (int(m[8]) * 60 + int(m[9])) * (-1 if m[7] == '-' else 1)
    return second < 60 or (hour * 60 + minute - offset) % 1440 == 23 * 60 + 59


def ecma(pattern):
    """An ECMA-262 expression in Python's dialect, as far as SOM's expressions go."""
    out, i, in_class = '', 0, False
    while i < len(pattern):
        c = pattern[i]
        if c == '\\':
            i += 1
            out += ('0-9' if in_class else '[0-9]') if pattern[i] == 'd' else '\\' + pattern[i]
        elif in_class:
            in_class = c != ']'
            out += '\\[' if c == '[' else c
        elif c == '[':
            in_class, out = True, out + c
        elif c == '.':
            out += '[^\n\r\u2028\u2029]'
        elif c == '$':
            out += r'\Z'
        else:
            out += c
        i += 1
    return out


FALSE = {'not': {}, '$comment': 'false'}


def translated(node):
    """The schema with its expressions translated (no member of SOM is called `pattern`), and `false` as a schema whose
    violation has a path: jsonschema forgets it otherwise."""
    if isinstance(node, dict):
        if 'properties' in node:
            node = {**node, 'properties': {k: FALSE if v is False else v for k, v in node['properties'].items()}}
        names = node.get('patternProperties')
        node = {k: ecma(v) if k == 'pattern' else translated(v) for k, v in node.items()}
        if names is not None:
            node['patternProperties'] = {ecma(k): translated(v) for k, v in names.items()}
    elif isinstance(node, list):
        node = [translated(x) for x in node]
    return node


def is_integer(_, x):
    return isinstance(x, int) and not isinstance(x, bool) or isinstance(x, Decimal) and x == x.to_integral_value()


def is_number(_, x):
    return isinstance(x, (int, Decimal)) and not isinstance(x, bool)


Exact = extend(Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine('integer', is_integer).redefine('number', is_number))


def pointer(path):
    return ''.join('/' + str(p).replace('~', '~0').replace('/', '~1') for p in path)


def listed(schema, base, error):
    """(rule, path, tolerable) of all that an error of jsonschema stands for."""
    at = base + pointer(error.absolute_path)
    keyword = error.validator
    if keyword == 'not' and error.schema == FALSE:
        return [(f'{schema}.false_schema', at, False)]
    if keyword == 'additionalProperties':
        return [(f'{schema}.{keyword}', at, True) for _ in find_additional_properties(error.instance, error.schema)]
    if keyword == 'format':
        return [(f'{schema}.format.{error.validator_value}', at, False)]
    if keyword in ('anyOf', 'oneOf'):
        branches = defaultdict(list)
        for inner in error.context:
            branches[inner.schema_path[0]] += listed(schema, base, inner)
        tolerable = keyword == 'anyOf' and any(all(t for *_, t in branch) for branch in branches.values())
        own = [*(v for branch in branches.values() for v in branch), (f'{schema}.{keyword}', at, False)]
        return [(rule, path, t or tolerable) for rule, path, t in own]
    return [(f'{schema}.{keyword}', at, keyword == 'enum')]


class Reference:
    def __init__(self, folder):
        self.schemas, self.validators = {}, {}
        for name in NAMES:
            with open(os.path.join(folder, f'{name}.schema.json'), encoding='utf-8') as f:
                self.schemas[name] = json.load(f)
            self.validators[name] = Exact(translated(self.schemas[name]), format_checker=formats)

    def violations(self, schema, value, base=''):
        return [v for e in self.validators[schema].iter_errors(value) for v in listed(schema, base, e)]

    def judge(self, text):
        """(refused, tolerated) of an envelope's text: sorted lists of (rule, path), one of them empty."""
        x = json.loads(text, parse_float=Decimal)
        get = lambda o, k: o.get(k) if isinstance(o, dict) else None
        version, kind, payload = get(x, 'som_version'), get(x, 'message_type'), get(x, 'payload')
        numbers = [int(n) for n in version.split('.')] if isinstance(version, str) and re.fullmatch(r'[0-9]+\.[0-9]+\.[0-9]+', version) else None
        if numbers and numbers[0] != 1:
            return [('som_version.pre_1_0' if numbers[0] == 0 else 'som_version.unsupported_major', '/som_version')], []
        found = self.violations('envelope', x)
        family = FAMILIES.get(kind) if isinstance(kind, str) else None
        if family and isinstance(payload, dict):
            found += self.violations(family, payload, '/payload')
        named = get(payload, 'message_type')
        if isinstance(named, str) and isinstance(kind, str) and named != kind:
            found.append(('payload.message_type_mismatch', '/payload/message_type', False))
        tolerant = bool(numbers) and numbers[1] > 0
        found = [(rule, path, t and tolerant) for rule, path, t in found]
        if isinstance(kind, str) and re.fullmatch(r'[a-z][a-z0-9_.]*', kind) and not family:
            unknown = bool(numbers) and not tolerant and kind.startswith(OWN)
            found.append(('message_type.unknown', '/message_type', False) if unknown else ('payload.unvalidated', '/payload', True))
        refused = sorted((rule, path) for rule, path, t in found if not t)
        return refused, [] if refused else sorted((rule, path) for rule, path, t in found if t)
