// The figures of a run as the table of docs/security.md. Pure.

import type { Campaign, Figures } from './campaign.ts';

export interface Row {
  readonly campaign: Pick<Campaign, 'name' | 'what'>;
  readonly rounds: number;
  readonly figures: Figures;
  readonly seconds: number;
}

const cells = (values: readonly (string | number)[]): string => `| ${values.join(' | ')} |`;

export function figuresTable(rows: readonly Row[]): string {
  return [
    cells(['campaign', 'what is tried', 'rounds', 'tried', 'refused', 'crashed', 'lost', 'time']),
    cells(['---', '---', '---:', '---:', '---:', '---:', '---:', '---:']),
    ...rows.map(({ campaign, rounds, figures, seconds }) =>
      cells([
        campaign.name,
        campaign.what.replaceAll('|', '\\|'),
        rounds,
        figures.tried,
        figures.refused,
        figures.crashed,
        figures.lost,
        `${seconds.toFixed(0)} s`,
      ]),
    ),
  ].join('\n');
}

const BEGIN = '<!-- figures: npm run test:hostile -- --write -->';
const END = '<!-- end of figures -->';

/** The page with the table between its two marks. Throws when the page has no such place. */
export function withTable(page: string, table: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error('the page has no place for the figures');
  return `${page.slice(0, begin + BEGIN.length)}\n\n${table}\n\n${page.slice(end)}`;
}
