type Cookie = {
  readonly name: string
  readonly value: string
  readonly path: string
  readonly sameSite: string
  readonly attributes: string
}

/** The part of a browser that logins depend on: cookies by host, `SameSite`, and redirects. */
export type WebBrowser = ReturnType<typeof createWebBrowser>

const redirectsMax = 20

export function createWebBrowser() {
  const jar = new Map<string, Cookie>()

  function keep(url: URL, response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...rest] = line.split(';').map((part) => part.trim())
      const attribute = (name: string) =>
        rest.find((part) => part.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1)
      const name = pair.slice(0, pair.indexOf('='))
      const path = attribute('path') ?? '/'
      const key = `${url.hostname} ${path} ${name}`
      const expires = attribute('expires')
      const isOver =
        attribute('max-age') === '0' || (expires !== undefined && Date.parse(expires) < Date.now())
      if (isOver) jar.delete(key)
      else {
        jar.set(key, {
          name,
          value: pair.slice(pair.indexOf('=') + 1),
          path,
          sameSite: attribute('samesite') ?? 'Lax',
          attributes: rest.join('; '),
        })
      }
    }
  }

  const cookiesFor = (url: URL, { isSameSite }: { isSameSite: boolean }) =>
    [...jar]
      .filter(([key, { path, sameSite }]) => {
        const isHere = key.startsWith(`${url.hostname} `) && url.pathname.startsWith(path)
        return isHere && (isSameSite || sameSite !== 'Strict')
      })
      .map(([, cookie]) => cookie)

  async function send(
    url: URL,
    init: RequestInit,
    { isSameSite }: { isSameSite: boolean },
  ): Promise<Response> {
    const headers = new Headers(init.headers)
    const cookies = cookiesFor(url, { isSameSite })
    if (cookies.length > 0) {
      headers.set('cookie', cookies.map(({ name, value }) => `${name}=${value}`).join('; '))
    }
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    keep(url, response)
    return response
  }

  return {
    /** Opens an address and follows redirects; returns every address on the way. */
    async open(
      address: string,
      { until = (_url: URL) => false, from }: { until?: (url: URL) => boolean; from?: string } = {},
    ): Promise<{ response: Response; visited: URL[] }> {
      let url = new URL(address)
      const visited = [url]
      // A strict cookie is withheld as soon as another site was on the way.
      const isSameSite = () =>
        visited.every(({ hostname }) => hostname === url.hostname) &&
        (from === undefined || new URL(from).hostname === url.hostname)
      let response = await send(url, {}, { isSameSite: isSameSite() })
      for (let hops = 0; hops < redirectsMax; hops++) {
        const location = response.headers.get('location')
        if (location === null) break
        url = new URL(location, url)
        visited.push(url)
        if (until(url)) break
        response = await send(url, {}, { isSameSite: isSameSite() })
      }
      return { response, visited }
    },

    /** A request of a script of the page at this address. */
    call(address: string, { method = 'GET', headers = {}, ...init }: RequestInit = {}) {
      const url = new URL(address)
      const isChange = method !== 'GET'
      const own = {
        ...(isChange ? { origin: url.origin, 'x-sluice-csrf': '1' } : {}),
        'sec-fetch-site': 'same-origin',
      }
      const sent = { ...init, method, headers: { ...own, ...Object(headers) } }
      return send(url, sent, { isSameSite: true })
    },

    cookies: () => [...jar.values()],
    cookie: (part: string) => [...jar.values()].find(({ name }) => name.includes(part)),
    setCookie(host: string, name: string, value: string) {
      jar.set(`${host} / ${name}`, { name, value, path: '/', sameSite: 'Lax', attributes: '' })
    },
    forget: () => jar.clear(),
  }
}
