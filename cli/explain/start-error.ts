// What the error of CreateContainer or StartContainer means. The words are those of runc and containerd. Pure.

export interface StartProblem {
  /** Ends a sentence that begins with "container NAME". */
  readonly verdict: string;
  /** What would mend it. */
  readonly hint: string;
}

export function startProblem(message: string): StartProblem {
  const program = /exec: \\?"([^"\\]+)\\?": (.*?)(?:: unknown)?$/s.exec(message);
  if (program !== null) {
    const [, file = '', why = ''] = program;
    if (/not found|no such file/.test(why)) {
      return {
        verdict: `cannot start: its command ${file} is not in the image`,
        hint: `another command, or an image that has ${file}`,
      };
    }
    if (/permission denied/.test(why)) {
      return {
        verdict: `cannot start: ${file} cannot be executed (permission denied)`,
        hint: `a file with the x permission`,
      };
    }
    if (/exec format error/.test(why)) {
      return {
        verdict: `cannot start: ${file} is for another processor, or no program`,
        hint: 'an image for this node’s processor',
      };
    }
    return { verdict: `cannot start: ${file}: ${why}`, hint: 'another command' };
  }
  const directory = /chdir to cwd \(?\\?"([^"\\]+)/.exec(message)?.[1];
  // runc makes a working directory that is not there.
  const made = /container init: mkdir ([^:]+): (.*?)(?:: unknown)?$/s.exec(message);
  if (made !== null) {
    return {
      verdict: `cannot start: its working directory ${made[1]} cannot be made (${made[2]})`,
      hint: 'another workingDir',
    };
  }
  if (directory !== undefined)
    return {
      verdict: `cannot start: its working directory ${directory} cannot be entered`,
      hint: 'another workingDir',
    };
  if (/seccomp/.test(message)) {
    const file = /seccomp profile \\?"([^"\\]+)/.exec(message)?.[1];
    return {
      verdict: `cannot be created: its seccomp profile ${file ?? ''} cannot be loaded`,
      hint: 'the profile’s file on the node, or another type of profile',
    };
  }
  if (/apparmor/i.test(message))
    return {
      verdict: 'cannot be created: its AppArmor profile cannot be used',
      hint: 'the profile, loaded on the node',
    };
  if (/read-only file system/.test(message))
    return {
      verdict: 'cannot start: a mount point cannot be made, its file system is read-only',
      hint: 'a mountPath that exists in the image, or a root file system that can be written',
    };
  if (/not a directory|Are you trying to mount a directory onto a file/.test(message)) {
    return {
      verdict: 'cannot start: a directory is mounted over a file, or the other way round',
      hint: 'another mountPath or subPath',
    };
  }
  if (/is mounted on .* but it is not a shared/.test(message))
    return {
      verdict: 'cannot be created: mountPropagation needs a shared mount on the node',
      hint: 'mount --make-rshared on the node',
    };
  if (/no users found|unable to find user|no matching entries in passwd|\/etc\/passwd: no such file/i.test(message))
    return { verdict: 'cannot be created: its user is not in the image', hint: 'a numeric runAsUser' };
  // What is mounted is looked for elsewhere: only a device's path is followed here.
  const device = /spec: lstat ([^:]+): no such file/.exec(message)?.[1];
  if (device !== undefined || /device|CDI/i.test(message)) {
    const verdict = `cannot be created: ${device === undefined ? 'a device that it needs' : `device ${device}`} is not there`;
    return { verdict, hint: 'the device on the node' };
  }
  if (/cgroup|OOM-killed|memory limit too low|memory.*too (small|low)/i.test(message))
    return { verdict: 'cannot start: its resource limits cannot be set, or are too low', hint: 'larger limits' };
  return {
    verdict: `cannot start: ${message.replace(/^.*(?:runc create failed|OCI runtime create failed): /s, '').replace(/: unknown$/, '')}`,
    hint: 'what the message names',
  };
}
