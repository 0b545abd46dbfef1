// A program: a ProbeRequest as JSON on standard input, its ProbeResult on standard output. `nodelet explain` starts it in the network
// namespace of a pod.

import { text } from 'node:stream/consumers';
import { probeNetwork } from './network-probe.ts';

process.stdout.write(JSON.stringify(await probeNetwork(JSON.parse(await text(process.stdin)))));
