// The frame of exercises, where it decides: text, solutions, the shell's environment, what is put back at the node, which
// processes an exercise may end, what `check` prints.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseRequest } from '../../../../cli/commands/csi-call.ts';
import { parseWorld } from '../../../../cli/exercises/begin.ts';
import { environmentFile, expandVariables, programs, quoted } from '../../../../cli/exercises/environment.ts';
import { worksIn } from '../../../../cli/exercises/leave.ts';
import { renderFindings } from '../../../../cli/exercises/report.ts';
import { nodePatch } from '../../../../cli/exercises/saved.ts';
import { namespaceOf } from '../../../../cli/exercises/session.ts';
import { rootOfShell } from '../../../../cli/exercises/shell-root.ts';
import { paragraphsOf, typeCommands, typed } from '../../../../cli/exercises/solve.ts';
import { readCurrent, removeCurrent, writeCurrent } from '../../../../cli/exercises/state.ts';
import { commandsOf, parseText, renderMarkdown, renderStep } from '../../../../cli/exercises/text.ts';
import { DEFAULT_ROOT, labPaths } from '../../../../cli/lab/paths.ts';
import type { Node } from '../../../../client/types.ts';
import { finding, isSolved } from '../../../../labs/exercises/model.ts';
import type { Clock } from '../../../../lib/clock.ts';
import { exec } from '../../../../lib/exec.ts';
import { hasProgram } from '../../../../lib/has-program.ts';
import { readProcess } from '../../../../lib/processes.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const directory = mkdtempSync(join(tmpdir(), 'nodelet-frame-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const TEXT = `# A title

What it is
about.

## First

Do [this](there.md):

\`\`\`sh
one
  two
\`\`\`

## Second

- a list whose first entry is longer than the line
- b
`;

describe('texts', () => {
  const text = parseText(TEXT);
  it('a file has a title, an introduction and steps', () => {
    expect(text).toMatchObject({
      title: 'A title',
      introduction: 'What it is\nabout.',
      steps: [{ title: 'First' }, { title: 'Second' }],
    });
    expect(() => parseText('no title')).toThrow('begins with "# "');
  });
  it('the commands are those of blocks marked sh', () => {
    expect(commandsOf(TEXT)).toEqual(['one', '  two']);
    expect(commandsOf('```yaml\na: 1\n```\n')).toEqual([]);
  });
  it('a step is rendered for a terminal: paragraphs wrapped, blocks indented and as they are, links without targets', () => {
    expect(renderStep(text, 1, 40)).toBe('Step 1 of 2: First\n\nDo this:\n\n    one\n      two');
    expect(renderStep(text, 2, 24)).toBe(
      'Step 2 of 2: Second\n\n- a list whose first\n  entry is longer than\n  the line\n- b',
    );
    expect(() => renderStep(text, 3, 40)).toThrow(RangeError);
  });
  it('a long word has a line of its own', () => {
    expect(renderMarkdown('a bbbbbbbbbb c', 5)).toBe('a\nbbbbbbbbbb\nc');
  });
});

describe('solutions', () => {
  it('are typed paragraph by paragraph', () => {
    expect(paragraphsOf('#!/bin/bash\n# why\none\n\n\ntwo\nmore\n')).toEqual(['# why\none', 'two\nmore']);
    expect(typed('# why\none\ntwo')).toBe('# why\n$ one\n> two');
  });
  const environment = join(directory, 'env');
  writeFileSync(environment, "export GREETING='good  morning'\n");
  let output: string;
  const typing = (paragraphs: readonly string[], clock: Clock, signal?: AbortSignal): Promise<void> => {
    output = '';
    return typeCommands(join(directory, 'solution.sh'), environment, paragraphs, {
      limitMs: 60_000,
      clock,
      ...(signal === undefined ? {} : { signal }),
      onOutput: (text) => {
        output += text;
      },
    });
  };

  it('each command is shown before its output, has the environment, and sets what the next ones use', async () => {
    const clock = new VirtualClock();
    await typing(['echo "$GREETING"', 'cat <<END\nin\nEND', 'cd /; two() { echo 2; }', 'pwd; two'], clock);
    expect(output).toBe(
      '\n$ echo "$GREETING"\ngood  morning\n\n$ cat <<END\n> in\n> END\nin\n\n$ cd /; two() { echo 2; }\n\n$ pwd; two\n/\n2\n',
    );
  });
  it('the first command that fails is the last one, and named', async () => {
    const failed = typing(['true', '# why\nfalse || (exit 7)', 'echo never'], new VirtualClock());
    await expect(failed).rejects.toThrow('a command failed (exit 7): false || (exit 7)');
    expect(output).not.toContain('never');
  });

  /** The pid of a command that never ends, once it runs. */
  async function hangs(): Promise<number> {
    await expect.poll(() => /^pid (\d+)$/m.exec(output)?.[1]).toBeDefined();
    return Number(/^pid (\d+)$/m.exec(output)?.[1]);
  }
  const HANGS = 'sleep 100000 & echo "pid $!"; wait';
  const isGone = async (pid: number): Promise<boolean> => {
    const entry = await readProcess(pid);
    return entry === undefined || entry.state === 'Z';
  };

  it('a command that does not end in time is named, and ends with all that was started', async () => {
    const clock = new VirtualClock();
    const late = typing(['true', `# why\n${HANGS}`, 'echo never'], clock).catch((error: unknown) => error);
    const pid = await hangs();
    await expect.poll(() => clock.timersSet).toBe(2);
    await clock.advance(59_999);
    expect(await isGone(pid)).toBe(false);
    await clock.advance(1);
    expect(await late).toMatchObject({ message: `a command did not end within 60 s: ${HANGS}` });
    await expect.poll(() => isGone(pid)).toBe(true);
    expect(output).not.toContain('never\n');
  });
  it('an interruption ends the command', async () => {
    const interrupted = new AbortController();
    const end = typing([HANGS], new VirtualClock(), interrupted.signal).catch((error: unknown) => error);
    const pid = await hangs();
    interrupted.abort();
    expect(await end).toMatchObject({ message: `interrupted in this command: ${HANGS}` });
    await expect.poll(() => isGone(pid)).toBe(true);
  });
});

describe('the shell', () => {
  it.for(['plain', 'two words', "it's", '$HOME', ''])('%j is quoted as one word', async (word) => {
    expect((await exec('sh', ['-c', `printf %s ${quoted(word)}`])).stdout).toBe(word);
  });
  it('its file sets variables, puts programs first on the path once, and goes to the directory', async () => {
    const file = join(directory, 'shell');
    writeFileSync(file, environmentFile(directory, new Map([['NODE', 'a b']])));
    const { stdout } = await exec('sh', ['-c', `. ${file}; . ${file}; echo "$NODE"; pwd; echo "$PATH"`], {
      env: { PATH: '/bin' },
    });
    expect(stdout).toBe(`a b\n${directory}\n${directory}/bin:/bin\n`);
  });
  it('only known variables of a manifest are replaced', () => {
    expect(expandVariables('a: \u0024{ONE}\u0024{TWO} $ONE', new Map([['ONE', '1']]))).toBe('a: 1\u0024{TWO} $ONE');
  });
  it('kubectl and crictl are added where the machine lacks them', () => {
    expect([...programs('/root', []).keys()]).toEqual(['csi', 'restart-agent']);
    expect([...programs('/root', ['kubectl', 'crictl']).keys()]).toEqual(['csi', 'restart-agent', 'crictl', 'kubectl']);
    expect(programs('/a b', []).get('restart-agent')).toMatch(/nodelet lab restart-agent --root '\/a b' "\$@"\n$/);
  });
  it('programs are looked up on the path', async () => {
    expect(await hasProgram('sh')).toBe(true);
    expect(await hasProgram('no-such-program')).toBe(false);
    expect(await hasProgram('sh', '/nonexistent:')).toBe(false);
  });
});

describe('the node as it was', () => {
  const saved = {
    labels: [['a', '1']] as const,
    taints: [{ key: 'mine', effect: 'NoSchedule' }],
    unschedulable: false,
  };
  const node = (labels: Record<string, string>, spec: object): Node => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n', uid: 'u', resourceVersion: '1', labels },
    spec,
  });
  it.for<[string, Node, object | undefined]>([
    ['as it was', node({ a: '1' }, { taints: saved.taints }), undefined],
    [
      'with the controllers’ own taint',
      node({ a: '1' }, { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }, ...saved.taints] }),
      undefined,
    ],
    [
      'with a label',
      node({ a: '1', b: '2' }, { taints: saved.taints }),
      { metadata: { labels: { b: null } }, spec: {} },
    ],
    ['without a label', node({}, { taints: saved.taints }), { metadata: { labels: { a: '1' } }, spec: {} }],
    [
      'with other taints and cordoned',
      node({ a: '1' }, { unschedulable: true, taints: [{ key: 'node.kubernetes.io/x', effect: 'NoSchedule' }] }),
      {
        metadata: { labels: {} },
        spec: {
          taints: [{ key: 'node.kubernetes.io/x', effect: 'NoSchedule' }, ...saved.taints],
          unschedulable: null,
        },
      },
    ],
  ])('%s', ([, now, patch]) => expect(nodePatch(now, saved)).toEqual(patch));
});

describe('what an exercise may end', () => {
  it.for<[string, string[], boolean]>([
    ['a tap of its own', ['node', '/x/cli/main.ts', 'tap', '--listen', 'unix:///l/exercises/a/tap.sock'], true],
    ['the user’s editor', ['vi', '/l/exercises/a/world.yaml'], false],
    ['the agent of the lab', ['node', '/x/cli/main.ts', 'agent', '--root-dir', '/l/kubelet'], false],
    ['a tap of another exercise', ['node', '/x/cli/main.ts', 'tap', '--listen', '/l/exercises/ab/tap.sock'], false],
  ])('%s', ([, argv, expected]) => expect(worksIn({ argv }, '/l/exercises/a')).toBe(expected));
});

describe('what check prints', () => {
  const exercise = { lesson: 'Now you know.' };
  const good = finding('a file', 'is there', true, 'make it');
  const bad = finding('another', 'is not there', false, 'make it');
  it('shows what was read, what was found, and what is missing', () => {
    expect(renderFindings(exercise, [good, bad])).toBe(
      '  ok   a file\n       found:   is there\n  no   another\n       found:   is not there\n       missing: make it\n\nNot yet: 1 of 2 is missing.',
    );
    expect(renderFindings(exercise, [good])).toMatch(/\n\nSolved\. Now you know\.$/);
  });
  it('nothing read is not solved', () => {
    expect([isSolved([]), isSolved([good]), isSolved([good, bad])]).toEqual([false, true, false]);
  });
});

describe('state and input', () => {
  it('which exercise is under way is a file; a damaged one and a lab without a place for it are named', async () => {
    const paths = labPaths(directory);
    await expect(writeCurrent(paths, { name: 'a', step: 1, hints: 0, startedLab: true })).rejects.toThrow('no place');
    const other = { ...paths, exercisesDir: directory };
    expect(await readCurrent(other)).toBeUndefined();
    const current = { name: 'a', step: 2, hints: 1, startedLab: true };
    await writeCurrent(other, current);
    expect(await readCurrent(other)).toEqual(current);
    writeFileSync(join(directory, 'current.json'), '{"name":');
    await expect(readCurrent(other)).rejects.toThrow('is damaged');
    await removeCurrent(other);
    expect(await readCurrent(other)).toBeUndefined();
  });
  it('a world is a list of manifests', () => {
    expect(parseWorld('kind: A\n---\nkind: B\n')).toEqual([{ kind: 'A' }, { kind: 'B' }]);
    expect(() => parseWorld('a: [')).toThrow();
  });
  it('a request for a CSI driver is an object of JSON', () => {
    expect(parseRequest('{"name": "a"}')).toEqual({ name: 'a' });
    expect(() => parseRequest('{')).toThrow('is not JSON');
    expect(() => parseRequest('[]')).toThrow('not an object');
  });
  it('namespaces of exercises have names of their own', () => expect(namespaceOf('a')).toBe('exercise-a'));
  it('in the shell of an exercise, commands are about its lab', () => {
    expect(rootOfShell({ LAB: '/srv/lab', NAMESPACE: namespaceOf('a') })).toBe('/srv/lab');
    expect(rootOfShell({ LAB: '/srv/lab' })).toBe(DEFAULT_ROOT);
    expect(rootOfShell({ NAMESPACE: namespaceOf('a') })).toBe(DEFAULT_ROOT);
  });
});
