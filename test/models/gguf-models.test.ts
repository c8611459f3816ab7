import { expect, test } from 'bun:test'
import type { InstalledModel, InstalledModels } from '#installer/library.ts'
import { chooseGguf, ggufModels } from '#models/gguf-models.ts'

function modelsOf(...installed: [name: string, ...files: string[]][]) {
  const models: InstalledModel[] = installed.map(([name, ...paths]) => ({
    name,
    source: 'test',
    revision: null,
    bytes: 0,
    isVerified: true,
    installedAt: '',
    files: paths.map((path, at) => ({ path, bytes: 10 ** at, sha256: '' })),
  }))
  const library: InstalledModels = {
    list: async () => models,
    pathOf: (model, file) => `/models/${encodeURIComponent(model.name)}/${file.path}`,
  }
  return ggufModels(library)
}

test('a model with one file has the name of the model', async () => {
  expect(await modelsOf(['house/small', 'README.md', 'q4/Small.GGUF'])).toEqual([
    {
      name: 'house/small',
      installedAs: 'house/small',
      path: '/models/house%2Fsmall/q4/Small.GGUF',
      bytes: 10,
    },
  ])
})

test('with several files, each has the name of its file as well', async () => {
  const models = await modelsOf(['small', 'small-q4.gguf', 'small-q8.gguf'])
  expect(models.map(({ name }) => name)).toEqual(['small:small-q4', 'small:small-q8'])
  expect(models.map(({ installedAs }) => installedAs)).toEqual(['small', 'small'])
})

test('the parts of a split file are one model', async () => {
  const parts = ['big-00002-of-00003.gguf', 'big-00001-of-00003.gguf', 'big-00003-of-00003.gguf']
  expect(await modelsOf(['big', ...parts])).toEqual([
    { name: 'big', installedAs: 'big', path: '/models/big/big-00001-of-00003.gguf', bytes: 111 },
  ])
})

test('other files are ignored', async () => {
  const models = await modelsOf(
    ['seeing', 'mmproj-f16.gguf', 'seeing.gguf'],
    ['other', 'model.safetensors'],
    ['empty'],
  )
  expect(models.map(({ name }) => name)).toEqual(['seeing'])
})

test.each([
  ['the best compromise', ['m-Q8_0.gguf', 'm-q4_k_m.gguf', 'm-Q4_0.gguf'], ['m-q4_k_m.gguf']],
  ['the next one to it', ['m-Q8_0.gguf', 'm-Q2_K.gguf', 'README.md'], ['m-Q8_0.gguf']],
  ['an only model of any name', ['mmproj-f16.gguf', 'm-bf16.gguf'], ['m-bf16.gguf']],
  [
    'all parts of one model',
    ['m-Q4_K_M-00001-of-00002.gguf', 'm-Q4_K_M-00002-of-00002.gguf', 'm-f16.gguf'],
    ['m-Q4_K_M-00001-of-00002.gguf', 'm-Q4_K_M-00002-of-00002.gguf'],
  ],
  ['nothing of nothing', ['README.md'], []],
])('of the files of a repository, %s is chosen', (_, files, chosen) => {
  const all = files.map((path) => ({ path }))
  expect(chooseGguf(all)).toEqual(chosen.map((path) => ({ path })))
})
