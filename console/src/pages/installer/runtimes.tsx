import { call } from '../../api/call.ts'
import type { Runtime } from '../../api/generated/types.ts'
import { format, hasText, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Fault } from '../../ui/notice.tsx'
import { useQuery } from '../../ui/query.ts'
import { perform } from '../../ui/toasts.tsx'

const prefix = 'runtime:'

/** The name of a download: that of its model, or what its runtime is for. */
export function downloadTitle(model: string): string {
  return model.startsWith(prefix) ? runtimeTitle(model.slice(prefix.length)) : model
}

function runtimeTitle(name: string, purpose = name): string {
  const key = `installer.runtime.${name}`
  return hasText(key) ? text(key) : purpose
}

const tones = { installed: 'good', missing: '', outdated: 'warn', unsupported: 'warn' } as const

/** What runs models and decodes audio on this machine, with a button for what is missing. */
export function Runtimes({ round, onChange }: { round: number; onChange: () => void }) {
  const query = useQuery(
    (signal) => call('GET /v1/model-installer/runtimes', { signal }),
    `runtimes ${round}`,
  )
  const rows = query.data?.data
  return (
    <section class="stack tight">
      <h2>{text('installer.runtimes')}</h2>
      <p class="small muted">{text('installer.runtimes_about')}</p>
      {query.error !== undefined && <Fault error={query.error} onRetry={query.reload} />}
      {rows !== undefined && (
        <ul class="card">
          {rows.map((runtime) => (
            <RuntimeRow key={runtime.name} runtime={runtime} onChange={onChange} />
          ))}
        </ul>
      )}
    </section>
  )
}

function RuntimeRow({ runtime, onChange }: { runtime: Runtime; onChange: () => void }) {
  const { name, state, default_model: model, download_id: downloadId } = runtime
  const title = runtimeTitle(name, runtime.purpose)
  const install = async () => {
    await perform(
      () => call('POST /v1/model-installer/runtimes/{name}/install', { path: { name } }),
      text('installer.started', { model: title }),
    )
    onChange()
  }
  const canInstall = (state === 'missing' || state === 'outdated') && downloadId === null
  const facts = [
    `${runtime.package} ${runtime.version}`,
    format.bytes(runtime.bytes),
    runtime.license,
  ]
  return (
    <li class="runtime">
      <div class="row between">
        <div>
          <strong>{title}</strong>
          <div class="small muted">{facts.join(' · ')}</div>
        </div>
        <div class="row">
          <span class={`status ${downloadId === null ? tones[state] : 'live'}`}>
            {text(
              downloadId === null ? `installer.runtime_state.${state}` : 'installer.installing',
            )}
          </span>
          {canInstall && (
            <Button
              size="small"
              icon="download"
              aria-label={text('installer.install_name', { model: title })}
              onClick={() => void install()}
            >
              {text('installer.install_runtime')}
            </Button>
          )}
        </div>
      </div>
      {state === 'outdated' && (
        <p class="small muted">
          {text('installer.runtime_outdated', {
            installed: runtime.installed_version ?? '–',
            version: runtime.version,
          })}
        </p>
      )}
      {state === 'installed' && model?.installed === false && (
        <DefaultModel model={model} onChange={onChange} />
      )}
    </li>
  )
}

function DefaultModel({
  model: { model, files, bytes },
  onChange,
}: {
  model: NonNullable<Runtime['default_model']>
  onChange: () => void
}) {
  const install = async () => {
    const body = { model, source: 'hub' as const, files: [...files] }
    await perform(
      () => call('POST /v1/model-installer/downloads', { body }),
      text('installer.started', { model }),
    )
    onChange()
  }
  return (
    <div class="row between">
      <span class="small">
        {text('installer.default_model', { model, size: format.bytes(bytes) })}
      </span>
      <Button
        size="small"
        icon="download"
        aria-label={`${text('installer.install_model')}: ${model}`}
        onClick={() => void install()}
      >
        {text('installer.install_model')}
      </Button>
    </div>
  )
}
