import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A folder with the runtime of local speech models and the weights of Whisper tiny.en, as made by
 * `.ci/speech`. Tests that recognise speech are skipped without it.
 */
const folder = process.env['SLUICE_TEST_SPEECH']
export const lacksWhisper = folder === undefined
if (lacksWhisper) console.warn('SLUICE_TEST_SPEECH names no folder: no speech model is run')

export const speechRuntime = join(folder ?? '/nowhere', 'sherpa')
export const tinyWhisper = join(folder ?? '/nowhere', 'tiny.en')

/** John F. Kennedy's inaugural address, 20 January 1961: 11 s of recorded speech in Ogg Opus. */
export const kennedy = join(import.meta.dir, '../../recordings/speech/jfk.opus')
export const kennedyWords =
  'and so my fellow americans ask not what your country can do for you ask what you can do for your country'

export function plainWords(text: string): string {
  return text.toLowerCase().replace(/[^a-z ]/g, '')
}

const commit = 'c'.repeat(40)

/** A model hub on loopback with one repository: the files of a folder. */
export async function serveHub(repository: string, from: string) {
  const files = await Promise.all(
    readdirSync(from).map(async (path) => {
      const hash = new Bun.CryptoHasher('sha256')
      hash.update(await Bun.file(join(from, path)).bytes())
      const size = statSync(join(from, path)).size
      const lfs = { oid: hash.digest('hex'), size }
      return { type: 'file', path, size, lfs }
    }),
  )
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === `/api/models/${repository}/revision/main`) {
        return Response.json({ sha: commit })
      }
      if (pathname === `/api/models/${repository}/tree/${commit}`) return Response.json(files)
      const base = `/${repository}/resolve/${commit}/`
      const file = files.find(({ path }) => pathname === base + path)
      if (file === undefined) return new Response('not found', { status: 404 })
      const content = Bun.file(join(from, file.path))
      const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get('range') ?? '') ?? []
      if (first === undefined) return new Response(content)
      const end = Math.min(file.size, last === '' ? file.size : Number(last) + 1)
      const range = `bytes ${first}-${end - 1}/${file.size}`
      return new Response(content.slice(Number(first), end), {
        status: 206,
        headers: { 'content-range': range, etag: `"${file.lfs.oid}"` },
      })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}
