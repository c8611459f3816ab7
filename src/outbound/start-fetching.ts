/**
 * Starts the thread behind `fetch`. Bun would do so with the first request, and ends the whole
 * process where no descriptor is left for it by then. No socket can be where this one asks.
 */
export async function startFetching(fetchPage: typeof fetch): Promise<void> {
  await fetchPage('http://localhost/', { unix: '/dev/null' }).catch(() => {})
}
