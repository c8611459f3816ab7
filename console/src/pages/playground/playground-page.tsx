import { useEffect, useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import { place } from '../../shell/router.ts'
import { stopSpeaking } from '../../speaking/speaking.ts'
import { speakers } from '../../speaking/voices.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Empty, Fault } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { useQuery } from '../../ui/query.ts'
import { Composer } from './composer.tsx'
import {
  ask,
  askAgain,
  changeSettings,
  clearConversation,
  resume,
  settings,
  turns,
} from './conversation.ts'
import { FollowAnswer } from './follow-answer.tsx'
import { Inspector } from './inspector.tsx'
import type { Turn } from './request.ts'
import { SettingsPanel } from './settings-panel.tsx'
import { TurnView } from './turn-view.tsx'

const suggestions = ['playground.suggest.hello', 'playground.suggest.explain'] as const

export function PlaygroundPage() {
  const models = useQuery((signal) => call('GET /v1/models', { signal }), 'models')
  const [inspected, setInspected] = useState<Turn | null>(null)
  const [fault, setFault] = useState<unknown>()
  const callable = (models.data?.data ?? []).filter(({ mode }) => mode === 'generate')
  const first = callable[0]?.id
  useEffect(() => {
    const isKnown = callable.some(({ id }) => id === settings.value.model)
    if (first !== undefined && !isKnown) changeSettings({ model: first })
  }, [first])
  useEffect(() => {
    speakers.value = (models.data?.data ?? []).filter(({ mode }) => mode === 'speak')
  }, [models.data])
  useEffect(() => {
    void resume()
    return stopSpeaking
  }, [])
  const asked = place.value.query.get('model')
  useEffect(() => {
    if (asked !== null) changeSettings({ model: asked })
  }, [asked])
  const submit: typeof ask = async (question) => {
    try {
      setFault(undefined)
      await ask(question)
    } catch (error) {
      setFault(error)
    }
  }
  const isEmpty = turns.value.length === 0
  return (
    <Page
      title={text('playground.title')}
      about={text('playground.about')}
      actions={
        <Button icon="plus" disabled={isEmpty} onClick={clearConversation}>
          {text('playground.new')}
        </Button>
      }
    >
      <div class="playground">
        <section class="conversation" aria-label={text('playground.conversation')}>
          {models.error !== undefined && <Fault error={models.error} onRetry={models.reload} />}
          {isEmpty ? (
            <div class="card">
              <Empty
                icon="playground"
                title={text('playground.empty')}
                action={
                  <div class="row">
                    {suggestions.map((key) => (
                      <Button
                        key={key}
                        size="small"
                        disabled={settings.value.model === ''}
                        onClick={() =>
                          void submit({ text: text(key), attachments: [], results: [] })
                        }
                      >
                        {text(key)}
                      </Button>
                    ))}
                  </div>
                }
              >
                {text('playground.empty_hint')}
              </Empty>
            </div>
          ) : (
            <ol class="turns">
              {turns.value.map((turn, at) => (
                <TurnView
                  key={turn.id}
                  turn={turn}
                  isLast={at === turns.value.length - 1}
                  onInspect={() => setInspected(turn)}
                  onResults={(results) => void submit({ text: '', attachments: [], results })}
                  onRetry={() => void askAgain().catch(setFault)}
                />
              ))}
            </ol>
          )}
          {fault !== undefined && <Fault error={fault} />}
          <FollowAnswer />
          <Composer onSubmit={submit} />
        </section>
        <SettingsPanel models={callable} />
      </div>
      {inspected !== null && <Inspector turn={inspected} onClose={() => setInspected(null)} />}
    </Page>
  )
}
