// The images of labs/images as the registry's: what builds them is loaded when the first one is asked for.

import { UserError } from '../../lib/errors.ts';
import { singleFlight } from '../../lib/single-flight.ts';
import type { LabImageSource } from './catalog.ts';

/** `report` gets a line for each image that is built. */
export async function labImages(report: (line: string) => void): Promise<readonly LabImageSource[]> {
  const { buildImages, loadDefinitions } = await import('../images/build.ts');
  const definitions = await loadDefinitions();
  return definitions.map((image) => ({
    names: image.definition.names,
    archive: singleFlight(async () => {
      const [built] = await buildImages([image], report);
      if (built === undefined) throw new UserError(`${image.file} was not built`);
      return built.archive;
    }),
  }));
}
