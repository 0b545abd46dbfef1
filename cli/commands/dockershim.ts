// `nodelet dockershim`: CRI on top of a Docker Engine.

import { Command } from 'commander';
import { UserError } from '../../lib/errors.ts';
import { createLog } from '../../lib/log.ts';
import { stopSignal } from './signals.ts';

interface Flags {
  readonly docker: string;
  readonly listen: string;
  readonly podInfraContainerImage: string;
  readonly cniConfDir: string;
  readonly cniBinDir: string;
  readonly cniCacheDir: string;
  readonly oomDir: string;
  readonly verbosity: string;
}

export function dockershimCommand(): Command {
  return new Command('dockershim')
    .description('serve CRI on top of a Docker Engine: Docker as the runtime of a kubelet')
    .option('--docker <url>', 'the Docker Engine’s socket', 'unix:///var/run/docker.sock')
    .option('--listen <url>', 'where to serve CRI', 'unix:///run/dockershim.sock')
    .option('--pod-infra-container-image <name>', 'the image of sandboxes', 'registry.k8s.io/pause:3.9')
    .option('--cni-conf-dir <dir>', 'network configurations; the first one is used', '/etc/cni/net.d')
    .option('--cni-bin-dir <dirs>', 'directories of CNI plugins, separated by commas', '/usr/lib/cni,/opt/cni/bin')
    .option('--cni-cache-dir <dir>', 'results of CNI, which have to outlive the shim', '/var/lib/dockershim/cni')
    .option('--oom-dir <dir>', 'containers killed for memory; has to outlive the shim', '/var/lib/dockershim/oom')
    .option('-v, --verbosity <level>', 'above 2: every call of CRI, Docker and CNI', '2')
    .action(async (flags: Flags) => {
      if (process.getuid?.() !== 0) throw new UserError('must be root: the shim enters pods’ network namespaces');
      const { runDockershim } = await import('../../dockershim/main.ts');
      await runDockershim(
        {
          docker: flags.docker,
          listen: flags.listen,
          sandboxImage: flags.podInfraContainerImage,
          cniConfDir: flags.cniConfDir,
          cniBinDirs: flags.cniBinDir.split(',').filter((directory) => directory !== ''),
          cniCacheDir: flags.cniCacheDir,
          oomDir: flags.oomDir,
        },
        createLog('dockershim', { verbosity: Number(flags.verbosity) }),
        stopSignal(),
      );
    });
}
