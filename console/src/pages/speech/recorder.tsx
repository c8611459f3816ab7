import { useEffect, useState } from 'preact/hooks'
import type { call } from '../../api/call.ts'
import { type TextKey, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Fault, Notice } from '../../ui/notice.tsx'
import type { Query } from '../../ui/query.ts'
import { quietDbfs } from './level.ts'
import { listMicrophones, MicrophoneError } from './microphone.ts'
import {
  engine,
  fault,
  ledger,
  levelDbfs,
  pauseRecording,
  resumeRecording,
  startRecording,
  state,
  stopRecording,
  warnings,
} from './recording.ts'
import { clockOf } from './transcript.ts'

export const languages = ['en', 'de', 'fr', 'cs', 'sk', 'el'] as const
const demoEngine = /^demo\b/

type Models = Query<Awaited<ReturnType<typeof call<'GET /v1/models'>>>>

export function Recorder({ models, engines }: { models: Models; engines: readonly string[] }) {
  const [deviceId, setDeviceId] = useState('')
  const [language, setLanguage] = useState<string>('en')
  const [engineName, setEngineName] = useState('')
  const [devices, reloadDevices] = useMicrophones()
  const current = state.value
  const isIdle = current === 'idle'
  const isDemo =
    engine.value === null
      ? engines.length > 0 && engines.every((name) => demoEngine.test(name))
      : demoEngine.test(engine.value.name)
  const start = async () => {
    await startRecording({
      deviceId: deviceId || null,
      language,
      engineName: engineName || null,
    })
    // Names of devices are known once one was allowed.
    reloadDevices()
  }
  return (
    <section class="card card-body stack" aria-label={text('speech.recorder')}>
      <div class="row between">
        <div class="row">
          {isIdle ? (
            <Button kind="primary" icon="speech" onClick={() => void start()}>
              {text('speech.start')}
            </Button>
          ) : (
            <Button kind="primary" icon="stop" onClick={() => void stopRecording()}>
              {text(current === 'finishing' ? 'speech.stop_now' : 'speech.stop')}
            </Button>
          )}
          {current === 'recording' && (
            <Button icon="pause" onClick={pauseRecording}>
              {text('speech.pause')}
            </Button>
          )}
          {current === 'paused' && (
            <Button icon="play" onClick={resumeRecording}>
              {text('speech.resume')}
            </Button>
          )}
        </div>
        <div class="row">
          {engine.value !== null && <span class="tag">{engine.value.name}</span>}
          <span class={`status ${statusLevels[current]}`} role="status">
            {text(`speech.state.${current}`)}
          </span>
          <span class="mono">{clockOf(ledger.value.capturedMs / 1000)}</span>
        </div>
      </div>
      <Level />
      <div class="speech-choices">
        <SelectField
          label={text('speech.microphone')}
          value={deviceId}
          onValue={setDeviceId}
          disabled={!isIdle}
          options={[
            { value: '', label: text('speech.microphone_default') },
            ...devices.map(({ deviceId: value, label }, index) => ({
              value,
              label: label || text('speech.microphone_number', { number: index + 1 }),
            })),
          ]}
        />
        <SelectField
          label={text('speech.language')}
          value={language}
          onValue={setLanguage}
          disabled={!isIdle}
          options={languages.map((value) => ({ value, label: text(`speech.language.${value}`) }))}
        />
        <SelectField
          label={text('speech.engine')}
          value={engineName}
          onValue={setEngineName}
          disabled={!isIdle}
          options={[
            { value: '', label: text('speech.engine_any') },
            ...engines.map((value) => ({ value, label: value })),
          ]}
        />
      </div>
      {models.error !== undefined && <Fault error={models.error} onRetry={models.reload} />}
      {isDemo && (
        <Notice kind="warn">
          <strong>{text('speech.demo')}</strong>
          <p>{text('speech.demo_hint')}</p>
        </Notice>
      )}
      <RecordingFault />
      {warnings.value.map(({ code, message }, index) => (
        <Notice key={`${index} ${code}`} kind="warn">
          {message} <code class="small">{code}</code>
        </Notice>
      ))}
    </section>
  )
}

const statusLevels = {
  idle: '',
  starting: 'live',
  recording: 'live',
  paused: 'warn',
  reconnecting: 'bad',
  finishing: 'live',
} as const

function Level() {
  const share = 1 - levelDbfs.value / quietDbfs
  const isLoud = levelDbfs.value > loudDbfs
  return (
    // biome-ignore lint/a11y/useSemanticElements: a meter element cannot be styled in every browser
    <div
      class={isLoud ? 'level loud' : 'level'}
      role="meter"
      aria-label={text('speech.level')}
      aria-valuemin={quietDbfs}
      aria-valuemax={0}
      aria-valuenow={Math.round(levelDbfs.value)}
      aria-valuetext={`${Math.round(levelDbfs.value)} dBFS`}
    >
      <div style={{ width: `${share * 100}%` }} />
    </div>
  )
}

/** Louder than this it is about to be distorted. */
const loudDbfs = -6

/** What can be done about a failure, by its code. */
const advice: Readonly<Record<string, TextKey>> = {
  capacity: 'speech.fault.capacity',
  unavailable: 'speech.fault.capacity',
  engine_failed: 'speech.fault.engine',
  engine_stalled: 'speech.fault.engine',
  engine_not_found: 'speech.fault.engine',
  finalize_timeout: 'speech.fault.engine',
  unsupported_language: 'speech.fault.language',
  permission_denied: 'advice.permission',
  disconnected: 'speech.fault.disconnected',
}

function RecordingFault() {
  const error = fault.value
  if (error === null) return null
  if (error instanceof MicrophoneError) {
    return (
      <Notice kind="bad">
        <strong>{text(`speech.microphone.${error.reason}`)}</strong>
        <p>{text(`speech.microphone.${error.reason}_hint`)}</p>
      </Notice>
    )
  }
  const hint = advice[error.code]
  return (
    <Notice kind="bad">
      <strong>{error.message ?? text('speech.fault.lost')}</strong>
      {hint !== undefined && <p>{text(hint)}</p>}
      <code class="small muted">{error.code}</code>
    </Notice>
  )
}

function useMicrophones(): readonly [readonly MediaDeviceInfo[], () => void] {
  const [devices, setDevices] = useState<readonly MediaDeviceInfo[]>([])
  const reload = () => void listMicrophones().then(setDevices, () => {})
  useEffect(() => {
    reload()
    navigator.mediaDevices?.addEventListener('devicechange', reload)
    return () => navigator.mediaDevices?.removeEventListener('devicechange', reload)
  }, [])
  return [devices, reload]
}
