import { signal } from '@preact/signals'

/** The console lives under this path. */
export const base = '/console'

type Place = { readonly path: string; readonly query: URLSearchParams }

export const place = signal<Place>(readPlace())

function readPlace(): Place {
  const path = location.pathname.slice(base.length).replace(/\/+$/, '')
  return { path: path === '' ? '/' : path, query: new URLSearchParams(location.search) }
}

export function href(path: string): string {
  return base + path
}

export function navigate(path: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', href(path))
  else history.pushState(null, '', href(path))
  place.value = readPlace()
}

/** Changes one parameter of the query without a new entry in the history. */
export function setQuery(name: string, value: string | null): void {
  const query = new URLSearchParams(place.value.query)
  if (value === null || value === '') query.delete(name)
  else query.set(name, value)
  navigate(query.size === 0 ? place.value.path : `${place.value.path}?${query}`, { replace: true })
}

/** Follows links of the console without loading the page again. */
export function startRouter(): void {
  addEventListener('popstate', () => {
    place.value = readPlace()
  })
  document.addEventListener('click', (event) => {
    const link = (event.target as Element | null)?.closest?.('a')
    if (!link || event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    if (link.target !== '' || link.hasAttribute('download') || link.hash !== '') return
    if (link.origin !== location.origin || !`${link.pathname}/`.startsWith(`${base}/`)) return
    event.preventDefault()
    navigate(link.pathname.slice(base.length) + link.search)
  })
}
