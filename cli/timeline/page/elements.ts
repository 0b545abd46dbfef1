// Elements of a page, for the scripts of both pages. Put into the page as it is, without its types.

export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element "${id}"`);
  return found;
}

export function element(name: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

export function muted(text: string): HTMLElement {
  const made = element('p', text);
  made.className = 'muted';
  return made;
}

export function button(text: string, onClick: () => void): HTMLElement {
  const made = document.createElement('button');
  made.type = 'button';
  made.textContent = text;
  made.addEventListener('click', onClick);
  return made;
}

export function table(
  caption: string,
  head: readonly string[],
  lines: readonly (readonly (string | HTMLElement)[])[],
): HTMLElement {
  const made = document.createElement('table');
  made.append(element('caption', caption));
  const header = document.createElement('thead');
  const headRow = document.createElement('tr');
  for (const text of head) {
    const cell = element('th', text);
    cell.setAttribute('scope', 'col');
    headRow.append(cell);
  }
  header.append(headRow);
  const body = document.createElement('tbody');
  for (const line of lines) {
    const row = document.createElement('tr');
    for (const value of line) {
      const cell = document.createElement('td');
      cell.append(value);
      row.append(cell);
    }
    body.append(row);
  }
  made.append(header, body);
  return made;
}

/**
 * Shows the data of `nodelet ui` again after each event of the server; one read at a time. Returns the function that reads
 * without an event.
 */
export function followData<T>(data: string, events: string, show: (next: T) => void): () => void {
  const state = byId('connection');
  const LIVE = 'live';
  let isReading = false;
  let again = false;
  const read = async (): Promise<void> => {
    try {
      const response = await fetch(data);
      if (response.ok) show(await response.json());
      state.textContent = response.ok ? LIVE : `not up to date: ${await response.text()}`;
    } catch (error) {
      state.textContent = `not up to date: ${String(error)}`;
    }
  };
  const changed = async (): Promise<void> => {
    again = true;
    if (isReading) return;
    isReading = true;
    while (again) {
      again = false;
      await read();
    }
    isReading = false;
  };
  const source = new EventSource(events);
  source.addEventListener('message', () => void changed());
  source.addEventListener('open', () => {
    state.textContent = LIVE;
  });
  source.addEventListener('error', () => {
    state.textContent = 'nodelet ui does not answer: what is shown is the last that it sent';
  });
  return () => void changed();
}
