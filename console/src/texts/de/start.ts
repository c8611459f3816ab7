export const start = {
  'start.about':
    'Eine Adresse für alle Modelle und Spracherkenner dahinter. Verbinden Sie einen Client, oder probieren Sie ein Modell gleich hier aus.',
  'start.chat': 'Mit einem Modell sprechen',
  'start.chat_hint':
    'Antworten, Werkzeuge und Gedankengang streamen, und die Anfrage als Code kopieren.',
  'start.client': 'Client',
  'start.clients': 'Client verbinden',
  'start.clients_hint':
    'Legen Sie einen Schlüssel an und kopieren Sie das Beispiel Ihres Clients. Es enthält Ihre Adresse und für diesen Besuch den neuen Schlüssel.',
  'start.database': 'Gateway',
  'start.engines': 'Spracherkenner',
  'start.engines_none': 'Keiner eingerichtet',
  'start.gateway_down': 'Wird beendet',
  'start.gateway_up': 'Nimmt Anfragen an',
  'start.greeting': 'Hallo, {name}',
  'start.health': 'Zustand',
  'start.key_create': 'Schlüssel für diese Beispiele anlegen',
  'start.key_made':
    'Schlüssel „{name}“ angelegt. Er ist hier zu sehen, bis Sie die Seite verlassen, danach nie wieder.',
  'start.key_name': 'Schnellstart der Konsole',
  'start.keys': 'Schlüssel verwalten',
  'start.model': 'Modell',
  'start.models': 'Modelle für Sie',
  'start.models_none': 'Noch kein Modell',
  'start.title': 'Start',
  'start.upstream_bad': '{bad} von {all} außer Betrieb',
  'start.upstream_good': '{all} in Betrieb',
  'start.upstreams': 'Upstreams',
}
