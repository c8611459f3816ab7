import { expect, test } from 'bun:test'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

test('the documentation packages are not resolved before a page loads their files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-assets-'))
  try {
    await cp('src/docs', join(folder, 'src/docs'), { recursive: true })
    await cp('src/lib', join(folder, 'src/lib'), { recursive: true })
    const manifest = { type: 'module', imports: { '#lib/*': './src/lib/*' } }
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
    const { createAssets } = await import(join(folder, 'src/docs/assets.ts'))
    const assets = createAssets()
    expect(await assets.pathOf('start-scalar.js')).toStartWith('/docs/assets/')
    await expect(assets.pathOf('swagger-ui.js')).rejects.toThrow('swagger-ui-dist')
    await expect(assets.pathOf('scalar.js')).rejects.toThrow('@scalar/fastify-api-reference')
  } finally {
    await rm(folder, { recursive: true })
  }
})
