import { expect, test } from 'bun:test'
import { listConfigKeys } from '#config/key-list.ts'
import { loadConfig } from '#config/load.ts'

test('every key has its value, source and reload, and no secret is shown', () => {
  const config = loadConfig({
    PORT: '9000',
    JWT_SECRET: 'a secret that only the tests know, 32+',
    SLUICE_UPSTREAM_URL: 'http://127.0.0.1:1/v1',
    SLUICE_UPSTREAM_KEY: 'sk-upstream-secret',
  })
  const keys = listConfigKeys(config)
  const find = (name: string) => keys.find(({ key }) => key === name)
  expect(find('port')).toEqual({
    key: 'port',
    description: 'TCP port; 0 picks a free one.',
    value: 9000,
    default: 8080,
    source: { kind: 'environment', variable: 'PORT' },
    isSecret: false,
    reloads: false,
  })
  expect(find('log_level')).toMatchObject({ value: 'info', source: null, reloads: true })
  expect(find('jwt.secret')).toMatchObject({ value: '[redacted]', isSecret: true })
  expect(find('limits.default.requests_per_minute')).toMatchObject({ value: null, default: null })
  expect(JSON.stringify(keys)).not.toMatch(/only the tests know|sk-upstream-secret/)
})
