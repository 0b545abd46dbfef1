import { describe, expect, it } from 'vitest';
import { parseRequiredSecrets } from '../../../../cli/commands/csi-driver.ts';
import { withoutSecrets } from '../../../../csi/driver/call-log.ts';
import { Faults, parseFaults } from '../../../../csi/driver/faults.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const open = (text: string, crash: () => never = () => expect.fail('crashed')) =>
  new Faults({ clock: new VirtualClock(), readFile: async () => undefined, crash, rules: parseFaults(text) });

describe('fault rules', () => {
  it('fail once by default, and only the call that they name', async () => {
    const faults = open('[{"method":"NodeStageVolume","action":"fail","code":"UNAVAILABLE","message":"away"}]');
    await (await faults.open('NodePublishVolume', 'v')).before();
    await expect((await faults.open('NodeStageVolume', 'v')).before()).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: 'away',
    });
    await (await faults.open('NodeStageVolume', 'v')).before();
  });
  it('can name the nth call, one volume, and every time', async () => {
    const second = open('[{"method":"*","call":2,"action":"fail"}]');
    await (await second.open('A', '')).before();
    await expect((await second.open('B', '')).before()).rejects.toMatchObject({ code: 'INTERNAL' });
    const always = open('[{"method":"*","volume":"v","times":0,"action":"fail","when":"after"}]');
    for (const _ of [1, 2, 3]) {
      const point = await always.open('A', 'v');
      await point.before();
      await expect(point.after()).rejects.toMatchObject({ code: 'INTERNAL' });
    }
    await (await always.open('A', 'w')).after();
  });
  it('can wait for a step', async () => {
    const point = await open('[{"method":"*","when":3,"action":"fail"}]').open('A', '');
    await point.before();
    await point.step();
    await point.step();
    await expect(point.step()).rejects.toMatchObject({ code: 'INTERNAL' });
  });
  it('delay by the clock, and hang for ever', async () => {
    const clock = new VirtualClock();
    const rules = parseFaults('[{"method":"A","action":"delay","delayMs":500},{"method":"B","action":"hang"}]');
    const faults = new Faults({ clock, readFile: async () => undefined, crash: () => expect.fail('crashed'), rules });
    let ended = '';
    void (await faults.open('A', '')).before().then(() => (ended += 'A'));
    void (await faults.open('B', '')).before().then(() => (ended += 'B'));
    await clock.advance(499);
    expect(ended).toBe('');
    await clock.advance(3_600_000);
    expect(ended).toBe('A');
  });
  it('hold a call until the rule is taken back, and say that they do', async () => {
    const clock = new VirtualClock();
    const rule = { method: 'A', action: 'hold', when: 1, message: 'first' };
    let file: string | undefined = JSON.stringify([rule, { method: 'B', action: 'fail' }]);
    const reported: string[] = [];
    const faults = new Faults({
      clock,
      file: 'faults.json',
      readFile: async () => file,
      crash: () => expect.fail('crashed'),
      onHold: (method, { message }) => reported.push(`${method} ${message}`),
    });
    const point = await faults.open('A', 'v');
    await point.before();
    expect(reported).toEqual([]);
    let over = false;
    const retained = point.step().then(() => (over = true));
    await clock.advance(10_000);
    expect({ over, reported }).toEqual({ over: false, reported: ['A first'] });
    file = '[]';
    await clock.advance(50);
    await retained;
    file = undefined;
    await (await faults.open('A', 'v')).step();
  });
  it.each([
    ['{', /JSON/],
    ['{}', /list/],
    ['[1]', /rule 1/],
    ['[{"method":"A"}]', /action/],
    ['[{"method":"A","action":"fail","code":"OK"}]', /code/],
    ['[{"method":"A","action":"fail","tmies":1}]', /tmies/],
    ['[{"method":"A","action":"delay","delayMs":-1}]', /delayMs/],
    ['[{"action":"fail"}]', /method/],
  ])('%s are refused', (text, words) => expect(() => parseFaults(text)).toThrow(words));
});

describe('the call log', () => {
  it('shows neither secrets nor tokens nor mount flags, and no empty field', () => {
    const request = {
      volume_id: 'v',
      staging_target_path: '',
      readonly: false,
      secrets: { user: 'admin', password: 'hunter2' },
      volume_capability: { mount: { fs_type: 'ext4', mount_flags: ['password=hunter2'] }, block: null },
      volume_context: { 'csi.storage.k8s.io/serviceAccount.tokens': '{"a":"hunter2"}', allocation: 'sparse' },
    };
    const shown = withoutSecrets(request);
    expect(JSON.stringify(shown)).not.toContain('hunter2');
    expect(JSON.stringify(shown)).not.toContain('admin');
    expect(shown).toMatchObject({
      volume_id: 'v',
      secrets: { user: '***', password: '***' },
      volume_context: { allocation: 'sparse' },
    });
    expect(shown).not.toHaveProperty('readonly');
  });
});

it('required secrets are given per method, and may contain anything', () => {
  expect(parseRequiredSecrets(['A:k=v', 'A:l==,x', 'B:k='])).toEqual({ A: { k: 'v', l: '=,x' }, B: { k: '' } });
  for (const text of ['A', 'A:k', ':k=v']) expect(() => parseRequiredSecrets([text])).toThrow(/METHOD:KEY=VALUE/);
});
