import { expect, test } from 'vitest';
import { crictlCommand, withFlags } from '../../../../cli/explain/command-text.ts';
import type { Explanation, NamedFinding } from '../../../../cli/explain/finding.ts';
import { NOW } from './facts.ts';

test('crictl is given the runtime of this machine’s node, where it is known', () => {
  expect(crictlCommand({ endpoint: 'unix:///run/x.sock' }, 'pods')).toBe(
    'nodelet crictl --runtime-endpoint unix:///run/x.sock pods',
  );
  expect(crictlCommand(undefined, 'pods')).toBe('nodelet crictl pods');
});

test('further questions go to the cluster that the first one went to, and nothing else changes', () => {
  const finding = (...commands: readonly string[]): NamedFinding => ({
    rule: 'r',
    state: 'broken',
    verdict: 'v',
    chain: [],
    commands: commands.map((command) => ({ command, why: 'w' })),
  });
  const explanation: Explanation = {
    target: { kind: 'pod', namespace: 'demo', name: 'web' },
    at: NOW,
    finding: finding('nodelet explain pod demo/web', 'kubectl get pods', 'nodelet crictl pods'),
    others: [finding('nodelet explain node n1')],
    fine: [],
    gaps: [],
  };
  const commandsOf = ({ finding: own, others }: Explanation): readonly string[] =>
    [own, ...others].flatMap(({ commands }) => commands.map(({ command }) => command));
  expect(commandsOf(withFlags(explanation, '--root /x'))).toEqual([
    'nodelet explain --root /x pod demo/web',
    'kubectl get pods',
    'nodelet crictl pods',
    'nodelet explain --root /x node n1',
  ]);
  expect(withFlags(explanation, '')).toBe(explanation);
});
