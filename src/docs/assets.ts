import { type KeptFile, keepFile, lazily } from './kept-file.ts'

const script = 'text/javascript; charset=utf-8'
const styles = 'text/css; charset=utf-8'

/** What the pages load: the packages as they are, and our own few lines that start them. */
const sources = {
  'swagger-ui.js': {
    type: script,
    url: import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
  },
  'swagger-ui.css': { type: styles, url: import.meta.resolve('swagger-ui-dist/swagger-ui.css') },
  'scalar.js': {
    type: script,
    url: new URL('browser/standalone.js', import.meta.resolve('@scalar/api-reference')).href,
  },
  'open-document.js': { type: script, url: ownFile('open-document.js') },
  'start-swagger.js': { type: script, url: ownFile('start-swagger.js') },
  'start-scalar.js': { type: script, url: ownFile('start-scalar.js') },
}

export type AssetName = keyof typeof sources

export type Assets = {
  /** `/docs/assets/<hash>/<name>`: another content has another path. */
  pathOf(name: AssetName): Promise<string>
  /** Null for what no page asks for. */
  find(hash: string, name: string): Promise<KeptFile | null>
}

export function createAssets(): Assets {
  const files = new Map<string, () => Promise<KeptFile>>(
    Object.entries(sources).map(([name, { type, url }]) => [
      name,
      lazily(() => keepFile(type, () => Bun.file(new URL(url)).bytes())),
    ]),
  )
  const open = async (name: string) => (await files.get(name)?.()) ?? null
  return {
    async pathOf(name) {
      const file = await open(name)
      return `/docs/assets/${file?.hash}/${name}`
    },
    async find(hash, name) {
      const file = await open(name)
      return file?.hash === hash ? file : null
    },
  }
}

function ownFile(name: string): string {
  return new URL(`pages/${name}`, import.meta.url).href
}
