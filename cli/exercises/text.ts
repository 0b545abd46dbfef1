// An exercise's text: a Markdown file whose part before the first "## " is the introduction, and whose every "## " is a step.
// Blocks marked `sh` are commands to type. Pure.

export interface ExerciseText {
  readonly title: string;
  readonly introduction: string;
  readonly steps: readonly Step[];
}

export interface Step {
  readonly title: string;
  readonly body: string;
}

/** Throws where the text has no title. */
export function parseText(markdown: string): ExerciseText {
  const [head = '', ...sections] = markdown.split(/^## /m);
  const title = /^# (.+)\n/.exec(head)?.[1];
  if (title === undefined) throw new Error('the text of an exercise begins with "# " and its title');
  return {
    title,
    introduction: head.slice(head.indexOf('\n') + 1).trim(),
    steps: sections.map((section) => {
      const end = section.indexOf('\n');
      return { title: section.slice(0, end).trim(), body: section.slice(end + 1).trim() };
    }),
  };
}

/** The lines of all blocks marked `sh`, in order, without empty ones. */
export function commandsOf(markdown: string): readonly string[] {
  return [...markdown.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, body = '']) =>
    body.split('\n').filter((line) => line.trim() !== ''),
  );
}

/** A paragraph in lines of at most `width` characters; `indent` before all lines but the first. */
function wrap(text: string, width: number, indent: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
}

const LINK = /\[([^\]]+)\]\([^)]+\)/g;

function paragraph(text: string, width: number): string {
  const items = text.split(/\n(?=(?:- |\d+\. ))/);
  return items
    .map((item) => wrap(item.replace(LINK, '$1').trim(), width, /^(?:- |\d+\. )/.test(item) ? '  ' : ''))
    .join('\n');
}

/** For a terminal: paragraphs wrapped, blocks indented, links without their targets. */
export function renderMarkdown(markdown: string, width: number): string {
  const parts: string[] = [];
  for (const [index, part] of markdown.split(/^```.*$/m).entries()) {
    // Every second part is inside a block.
    if (index % 2 === 1) parts.push(part.replace(/^\n|\n$/g, '').replace(/^(?=.)/gm, '    '));
    else {
      const paragraphs = part.split(/\n{2,}/).filter((text) => text.trim() !== '');
      parts.push(...paragraphs.map((text) => paragraph(text.trim(), width)));
    }
  }
  return parts.join('\n\n');
}

/** "Step 2 of 5: The sandbox", and its body. `number` counts from 1. */
export function renderStep(text: ExerciseText, number: number, width: number): string {
  const step = text.steps[number - 1];
  if (step === undefined) throw new RangeError(`there is no step ${number}`);
  return `Step ${number} of ${text.steps.length}: ${step.title}\n\n${renderMarkdown(step.body, width)}`;
}
