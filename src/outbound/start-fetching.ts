/**
 * Starts the thread behind `fetch`. Bun starts it with the first request, and ends the process if no
 * file descriptor is left for it. The request goes to a path where no socket can exist.
 */
export async function startFetching(fetchPage: typeof fetch): Promise<void> {
  await fetchPage('http://localhost/', { unix: '/dev/null' }).catch(() => {})
}
