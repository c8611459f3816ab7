type Manifest = {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  readonly engines: { readonly bun: string }
  readonly dependencies: Readonly<Record<string, string>>
}

/**
 * The manifest of the npm package. The bundle contains all packages except the MP3 decoder, so nothing
 * else is installed with it. `private` prevents publishing by accident; the release workflow removes it.
 */
export function releaseManifest(manifest: Manifest): string {
  const { name, version, description, license, engines, dependencies } = manifest
  const released = {
    name,
    version,
    description,
    license,
    private: true,
    type: 'module',
    bin: { sluice: 'bin/sluice.js' },
    files: ['bin', 'lib', 'LICENSE', 'README.md', 'THIRD_PARTY_NOTICES', 'CHANGELOG.md'],
    engines,
    optionalDependencies: { 'mpg123-decoder': dependencies['mpg123-decoder'] },
  }
  return `${JSON.stringify(released, null, 2)}\n`
}
