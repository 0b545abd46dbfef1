// A project's files with the compiler's types, for rules about them. Opening one takes seconds: several rules may share it.

import { API, type Project } from 'typescript/unstable/sync';

export class LintProject implements Disposable {
  /** Ends with "/". */
  readonly root: string;
  readonly project: Project;
  readonly #api: API;

  /** The project of the tsconfig.json in `root`, which ends with "/". */
  constructor(root: string) {
    this.root = root;
    this.#api = new API({ cwd: root });
    const [project] = this.#api.updateSnapshot({ openProjects: [`${root}tsconfig.json`] }).getProjects();
    if (project === undefined) {
      this.#api.close();
      throw new Error(`no project at ${root}tsconfig.json`);
    }
    this.project = project;
  }

  /** Whole names of its own files below the root whose names there `wanted` accepts. */
  files(wanted: (file: string) => boolean): string[] {
    const names = this.project.program.getSourceFileNames();
    return names.filter(
      (name) => name.startsWith(this.root) && !name.includes('/node_modules/') && wanted(name.slice(this.root.length)),
    );
  }

  [Symbol.dispose](): void {
    this.#api.close();
  }
}
