import { afterEach, describe } from 'vitest';
import { Store } from '../../../../apiserver/storage/store.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { storeContract } from './contract.ts';

const opened: Store[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

describe('the SQLite store', () => {
  storeContract(async () => {
    const store = new Store(':memory:', { clock: new VirtualClock() });
    opened.push(store);
    return store;
  });
});
