// The set-up script on this machine, and on machines it pretends to be on; the Vagrantfile, checked by Vagrant itself.

import { chmod, copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readFileIfExists } from '../../../lib/atomic.ts';
import { type ExecResult, exec } from '../../../lib/exec.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SETUP = join(ROOT, 'scripts/setup');

let work: string;
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'nodelet-setup-'));
  await chmod(work, 0o755);
});
afterEach(() => rm(work, { recursive: true, force: true }));

/** Puts a program of that name before the real one. */
async function pretend(name: string, script: string): Promise<void> {
  await writeFile(join(work, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

const env = () => ({ ...process.env, PATH: `${work}:${process.env['PATH']}` });

describe('scripts/setup', () => {
  const setup = (...args: string[]): Promise<ExecResult> => exec('sh', [SETUP, ...args], { env: env() });

  it('prints in one line each that nothing is missing, and nothing at all with --quiet', async () => {
    await pretend('apt-get', 'echo "apt-get was called" >&2; exit 1');
    await pretend('npm', 'echo "npm was called" >&2; exit 1');
    const spoken = await setup();
    expect([spoken.code, spoken.stdout, spoken.stderr]).toEqual([
      0,
      'setup: system packages are there\nsetup: npm packages are there\n',
      '',
    ]);
    const quiet = await setup('--quiet');
    expect([quiet.code, quiet.stdout, quiet.stderr]).toEqual([0, '', '']);
  });

  it('installs only what is missing, without letting a service start', async () => {
    await pretend('dpkg-query', 'case "$*" in *curl*|*busybox-static*) exit 1;; *) echo installed;; esac');
    await pretend(
      'apt-get',
      `echo "$* policy=$(test -x /usr/sbin/policy-rc.d && /usr/sbin/policy-rc.d; echo $?)" >>${work}/calls`,
    );
    // A container image may bring a policy of its own, which stays.
    const policy = await readFileIfExists('/usr/sbin/policy-rc.d');
    const result = await setup();
    expect([result.code, result.stderr]).toEqual([0, '']);
    expect(await readFileIfExists('/usr/sbin/policy-rc.d')).toBe(policy);
    expect(await readFile(join(work, 'calls'), 'utf8')).toBe(
      'update -qq policy=101\ninstall -y -qq --no-install-recommends busybox-static curl policy=101\n',
    );
    expect(result.stdout.split('\n').slice(0, 2)).toEqual([
      'setup: apt-get update',
      'setup: apt-get install busybox-static curl',
    ]);
  });

  it('prints apt’s message when it cannot install', async () => {
    await pretend('dpkg-query', 'exit 1');
    await pretend('apt-get', 'case "$1" in install) echo "E: Unable to locate package"; exit 100;; esac');
    const result = await setup();
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('E: Unable to locate package\nsetup: apt-get could not install containerd runc');
  });

  it('without root names what is missing, in one line', async () => {
    await pretend('dpkg-query', 'case "$*" in *runc*) exit 1;; *) echo installed;; esac');
    await pretend('id', 'echo 1000');
    const result = await setup();
    expect([result.code, result.stderr]).toEqual([1, 'setup: must be root to install with apt: runc\n']);
  });

  it('on another system than Linux is refused in one line', async () => {
    await pretend('uname', 'echo Darwin');
    const result = await setup();
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(/^setup: nodelet runs pods with Linux's own means, and this is Darwin[^\n]*\n$/);
  });

  it('with --npm-only checks no system package', async () => {
    await pretend('dpkg-query', 'exit 1');
    const result = await setup('--npm-only');
    expect([result.code, result.stdout]).toEqual([0, 'setup: npm packages are there\n']);
  });

  it('refuses an option that it does not know', async () => {
    const result = await setup('--fast');
    expect([result.code, result.stderr]).toEqual([1, 'setup: unknown option --fast\n']);
  });
});

describe('bin/nodelet', () => {
  it('works through a link from anywhere', async () => {
    await exec('ln', ['-s', join(ROOT, 'bin/nodelet'), join(work, 'nodelet')]);
    const result = await exec(join(work, 'nodelet'), ['--help'], { cwd: '/' });
    expect(result.code).toBe(0);
    expect(result.stdout).toContain('Usage: nodelet');
  });

  it('that is not set up prints what to type', async () => {
    await exec('mkdir', [join(work, 'bin')]);
    await copyFile(join(ROOT, 'bin/nodelet'), join(work, 'bin/nodelet'));
    const result = await exec(join(work, 'bin/nodelet'), ['up']);
    expect([result.code, result.stderr]).toEqual([1, `nodelet: not set up yet: run "npm run setup" in ${work}\n`]);
  });
});

describe('the Vagrantfile', () => {
  const vagrant = (): Promise<ExecResult> =>
    exec('vagrant', ['validate', '--ignore-provider'], {
      cwd: work,
      env: { ...process.env, VAGRANT_HOME: join(work, 'home'), VAGRANT_CHECKPOINT_DISABLE: '1' },
    });

  it('is valid to Vagrant', async () => {
    await copyFile(join(ROOT, 'Vagrantfile'), join(work, 'Vagrantfile'));
    const result = await vagrant();
    expect([result.code, result.stdout]).toEqual([0, expect.stringContaining('Vagrantfile validated successfully.')]);
  });

  it('would be refused with a setting that Vagrant does not know', async () => {
    const text = await readFile(join(ROOT, 'Vagrantfile'), 'utf8');
    await writeFile(join(work, 'Vagrantfile'), text.replace('config.vm.hostname =', 'config.vm.host_name_typo ='));
    expect((await vagrant()).code).not.toBe(0);
  });

  it('provisions with the set-up script that the commands use, in shell that parses', async () => {
    const text = await readFile(join(ROOT, 'Vagrantfile'), 'utf8');
    expect(text).toContain("inline: 'sh /nodelet/scripts/setup'");
    const inline = /<<~SHELL\n([\s\S]*?)\n\s*SHELL\n/.exec(text)?.[1] ?? '';
    expect(inline).toContain('npm install --global');
    expect((await exec('sh', ['-n'], { stdin: inline })).code).toBe(0);
    for (const provider of ['virtualbox', 'libvirt']) {
      expect(text).toContain(`${provider}.cpus = 2`);
      expect(text).toContain(`${provider}.memory = 4096`);
    }
  });
});
