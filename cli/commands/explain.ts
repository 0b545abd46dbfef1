// `nodelet explain`: why a pod, node, service or claim, or what makes pods, is not as it should be.

import { Command, Option } from 'commander';
import type { ExplainOptions } from '../explain/main.ts';
import { DEFAULT_ROOT } from '../lab/paths.ts';
import { stopSignal } from './signals.ts';

type Flags = Omit<ExplainOptions, 'watch'> & { readonly watch?: boolean };

export function explainCommand(): Command {
  return new Command('explain')
    .description('say why a pod, node, service or claim is not Ready, and what to do (docs/explain.md)')
    .argument('<kind>', 'pod, node, service, pvc, deployment, replicaset, statefulset, daemonset or job')
    .argument('<name>', 'NAMESPACE/NAME, or NAME in the kubeconfig’s namespace')
    .option('--root <dir>', 'the lab’s directory', DEFAULT_ROOT)
    .option('--kubeconfig <file>', 'another cluster than the lab’s')
    .option('--runtime-endpoint <url>', 'the CRI runtime of this machine (default: the lab’s, or containerd’s)')
    .option('--trace-socket <path>', 'the trace socket of an agent that runs alone')
    .option('--node-name <name>', 'the node that this machine is (default: the lab’s, or the host name)')
    .option('--agent-kubeconfig <file>', 'of this machine’s agent (default: the lab’s, or the running agent’s)')
    .option('--network-namespace <file>', 'of the node, where it is another than this process’s: /run/netns/NAME')
    .option('--from <pod>', 'for a Service: the pod that cannot reach it (default: one of its namespace)')
    .addOption(new Option('-o, --output <format>', 'how to print it').choices(['text', 'json']).default('text'))
    .option('-w, --watch', 'go on until it is Ready, and print each change')
    .action(async (kind: string, name: string, { watch, ...flags }: Flags) => {
      const { runExplain } = await import('../explain/main.ts');
      const write = (text: string): void => void process.stdout.write(text);
      process.exitCode = await runExplain(kind, name, { ...flags, watch: watch === true }, write, stopSignal());
    });
}
