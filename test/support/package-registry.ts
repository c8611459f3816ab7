import { packTar } from 'modern-tar'

/** A package registry on this machine, for packages without dependencies and with install scripts. */
export function startPackageRegistry() {
  const versions = new Map<string, string>()
  let gate = Promise.withResolvers<void>()
  gate.resolve()
  let waiting = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname, origin } = new URL(request.url)
      const [, name = '', file] = /^\/(@[^/]+\/[^/]+|[^/]+)(\/.*)?$/.exec(
        decodeURIComponent(pathname),
      ) ?? ['', '']
      const version = versions.get(name)
      if (version === undefined) return Response.json({ error: 'not found' }, { status: 404 })
      const tarball = await tarballOf(name, version)
      if (file === undefined) {
        return Response.json({
          name,
          'dist-tags': { latest: version },
          versions: {
            [version]: {
              name,
              version,
              hasInstallScript: true,
              dist: { tarball: `${origin}/${name}/-/${version}.tgz`, integrity: hashOf(tarball) },
            },
          },
        })
      }
      waiting += 1
      await gate.promise
      waiting -= 1
      return new Response(tarball)
    },
  })
  return {
    url: server.url.href,
    /** `name@version`. */
    publish(packages: readonly string[]): void {
      for (const named of packages) {
        const at = named.lastIndexOf('@')
        versions.set(named.slice(0, at), named.slice(at + 1))
      }
    },
    /** Holds archives back until `release`. */
    hold(): void {
      gate = Promise.withResolvers<void>()
    },
    release: () => gate.resolve(),
    /** Requests of archives that are held back. */
    waiting: () => waiting,
    stop: () => server.stop(true),
  }
}

async function tarballOf(name: string, version: string): Promise<Uint8Array<ArrayBuffer>> {
  const described = JSON.stringify({ name, version, scripts: { postinstall: 'exit 3' } })
  const archive = await packTar([
    {
      header: { name: 'package/package.json', size: described.length, mtime: new Date(0) },
      body: described,
    },
  ])
  return Bun.gzipSync(new Uint8Array(archive))
}

function hashOf(bytes: Uint8Array): string {
  return `sha512-${new Bun.CryptoHasher('sha512').update(bytes).digest('base64')}`
}
