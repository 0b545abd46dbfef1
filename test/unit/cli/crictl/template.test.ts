import { describe, expect, test } from 'vitest';
import { runTemplate } from '../../../../cli/crictl/template.ts';
import { TemplateError } from '../../../../cli/crictl/template-parse.ts';

const DATA = JSON.stringify({
  name: 'web',
  count: 3,
  none: null,
  zero: 0,
  empty: [],
  up: true,
  labels: { b: '2', a: '1', 'x.y/z': '<&>' },
  list: [{ id: 'one' }, { id: 'two' }],
}).replace('{', '{"big":12345678901234567890,');

// What text/template with missingkey=error and json.Number makes of the same.
test.each([
  ['{{.name}}', 'web'],
  ['a {{- " b " -}} c', 'a b c'],
  ['{{/* nothing */}}x', 'x'],
  ['{{.count}} {{.big}} {{.up}} {{.none}}', '3 12345678901234567890 true <no value>'],
  ['{{.labels}}', 'map[a:1 b:2 x.y/z:<&>]'],
  ['{{.list}} {{.empty}}', '[map[id:one] map[id:two]] []'],
  ['{{range .list}}{{.id}},{{end}}', 'one,two,'],
  ['{{range $i, $e := .list}}{{$i}}={{$e.id}} {{end}}', '0=one 1=two '],
  ['{{range $k, $v := .labels}}{{$k}}:{{$v}} {{end}}', 'a:1 b:2 x.y/z:<&> '],
  ['{{range $e := .list}}{{$e.id}}{{end}}', 'onetwo'],
  ['{{range .empty}}x{{else}}none{{end}}', 'none'],
  ['{{if .empty}}x{{else if eq .name "web"}}y{{else}}z{{end}}', 'y'],
  ['{{if .none}}x{{end}}', ''],
  ['{{if .zero}}a json.Number is a string{{end}}', 'a json.Number is a string'],
  ['{{with .labels}}{{.a}}{{end}}', '1'],
  ['{{with $x := .name}}{{$x}}{{$.count}}{{end}}', 'web3'],
  ['{{$x := 1}}{{if .up}}{{$x = 2}}{{end}}{{$x}}', '2'],
  ['{{index .list 1 "id"}} {{index .labels "x.y/z"}} {{index .labels "no"}}', 'two <&> <no value>'],
  ['{{(index .list 0).id}}', 'one'],
  ['{{len .list}} {{len .name}} {{len .labels}}', '2 3 3'],
  ['{{.name | printf "%-5s|%5s|" .name}}', 'web  |  web|'],
  [
    '{{printf "%d%% %05d %q %v %t %.1f" .count .count .name .labels .up 1.25}}',
    '3% 00003 "web" map[a:1 b:2 x.y/z:<&>] true 1.3',
  ],
  ['{{and .up .name}} {{or .none .name}} {{not .up}}', 'web web false'],
  ['{{and .none .no.such.field}}', '<no value>'],
  ['{{eq .name "a" "web"}} {{ne .name "a"}} {{lt 1 2}} {{ge .count 3}}', 'true true true true'],
  ['{{json .labels}}', '{"a":"1","b":"2","x.y/z":"\\u003c\\u0026\\u003e"}\n'],
  ['{{.name | upper}} {{title "ab cd"}} {{lower "AB"}}', 'WEB Ab Cd ab'],
  ['{{print 1 2 "a" 3}}{{println "x" 1}}', '1 2a3x 1\n'],
  ['{{`raw "}}`}}', 'raw "}}'],
])('%s', (template, output) => {
  expect(runTemplate(template, DATA)).toBe(output);
});

describe('what is not there, or not supported, is refused by name', () => {
  test.each([
    ['{{.nothing}}', 'map has no entry for key "nothing"'],
    ['{{.constructor}}', 'map has no entry for key "constructor"'],
    ['{{.name.x}}', "can't evaluate field x in web"],
    ['{{template "x"}}', '{{template}} is not supported'],
    ['{{define "x"}}{{end}}', '{{define}} is not supported'],
    ['{{range .list}}{{break}}{{end}}', '{{break}} is not supported'],
    ['{{html .name}}', 'the function html is not supported'],
    ['{{nosuch .name}}', 'function "nosuch" not defined'],
    ['{{$y}}', 'undefined variable "$y"'],
    ['{{if .up}}', 'unexpected end of the template: {{end}} is missing'],
    ['{{end}}', 'unexpected {{end}}'],
    ['{{.name', 'unclosed action: {{.name'],
    ['{{index .list 9}}', 'error calling index: index out of range: 9'],
    ['{{eq .name .list}}', 'error calling eq: incompatible types for comparison'],
    ['{{printf "%z" .name}}', 'printf: the verb %z is not supported'],
    ['{{.name .count}}', '{{.name .count}}: a value is no function and takes no arguments'],
    ['{{.name ~}}', 'unexpected "~" in {{.name ~}}'],
    ['{{len .count}}', 'error calling len: len of 3'],
  ])('%s', (template, message) => {
    expect(() => runTemplate(template, DATA)).toThrow(new TemplateError(message));
  });
});
