{{/* What the pods of all components have in common: everything but their containers. Given the root and a component. */}}
{{- define "sfm-stream.pod" -}}
{{- $pods := .root.Values.pods -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $pods.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $pods.runAsUser }}
  runAsGroup: {{ $pods.runAsUser }}
  fsGroup: {{ $pods.runAsUser }}
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $pods.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and $pods.topologyKeys (ne .component "first-start") }}
topologySpreadConstraints:
  {{- range $pods.topologyKeys }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "sfm-stream.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end -}}

{{- define "sfm-stream.container" -}}
image: {{ include "sfm-stream.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}

{{- define "sfm-stream.mounts" -}}
{{- /* Of serve the file alone: beside it is the folder of its copies. */}}
{{- if eq .component "serve" }}
- {name: config, mountPath: /pipeline/app.toml, subPath: app.toml, readOnly: true}
{{- else }}
- {name: config, mountPath: /pipeline, readOnly: true}
{{- end }}
{{- range $number, $secret := .root.Values.secrets }}
{{- if has $.component $secret.components }}
- {name: secret-{{ $number }}, mountPath: {{ $secret.mountPath }}, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{/* Given besides: configName, where it is not the one of the component. */}}
{{- define "sfm-stream.volumes" -}}
- name: config
  configMap:
    name: {{ .configName | default (include "sfm-stream.configName" .) }}
{{- range $number, $secret := .root.Values.secrets }}
{{- if has $.component $secret.components }}
- name: secret-{{ $number }}
  secret:
    secretName: {{ $secret.name }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- end -}}

{{/*
Labels and annotations of the pods of a Deployment. A pod is made anew where its configuration is another one. No label
says which chart made it: a newer chart alone would make all workers read their open windows again.
*/}}
{{- define "sfm-stream.podMetadata" -}}
labels:
  {{- include "sfm-stream.selector" . | nindent 2 }}
  {{- with .root.Values.pods.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  checksum/config: {{ include "sfm-stream.config" . | sha256sum }}
  {{- with .root.Values.pods.annotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
