import type { ModelOrigin } from './model-origin.ts'

export type HubFiles = Readonly<Record<string, Uint8Array>>

type PutOptions = Parameters<ModelOrigin['put']>[2]

/**
 * Serves a repository as the model hub does; a further call replaces its files by a new commit. Returns
 * the commit.
 */
export function publishModel(
  origin: ModelOrigin,
  name: string,
  files: HubFiles,
  options: PutOptions = {},
): string {
  const commit = sha256Of(Buffer.concat(Object.values(files))).slice(0, 40)
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))
  const headers = { 'content-type': 'application/json' }
  const siblings = Object.keys(files).map((rfilename) => ({ rfilename }))
  for (const asked of ['main', commit]) {
    const path = `/api/models/${name}/revision/${asked}`
    origin.put(path, json({ id: name, sha: commit, siblings }), { headers })
  }
  const tree = Object.entries(files).map(([path, content]) => ({
    type: 'file',
    path,
    size: content.length,
    oid: 'f'.repeat(40),
    lfs: { oid: sha256Of(content), size: content.length, pointerSize: 130 },
  }))
  origin.put(`/api/models/${name}/tree/${commit}`, json(tree), { headers })
  for (const [path, content] of Object.entries(files)) {
    origin.put(`/${name}/resolve/${commit}/${path}`, content, options)
  }
  return commit
}

function sha256Of(content: Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(content).digest('hex')
}
