{{- define "sfm-stream.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "sfm-stream.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "sfm-stream.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sfm-stream.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What pods are selected by. Given the root and a component. */}}
{{- define "sfm-stream.selector" -}}
app.kubernetes.io/name: {{ include "sfm-stream.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "sfm-stream.labels" -}}
{{ include "sfm-stream.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* The text of the configuration of a component. The first start has that of ingest. */}}
{{- define "sfm-stream.config" -}}
{{- $of := eq .component "first-start" | ternary "ingest" .component -}}
{{- default .root.Values.config (index .root.Values $of).config -}}
{{- end -}}

{{/* The ConfigMap that a component reads: its own, or the one of all. */}}
{{- define "sfm-stream.configName" -}}
{{- if (index .root.Values .component).config -}}
{{- printf "%s-%s" (include "sfm-stream.fullname" .root) .component -}}
{{- else -}}
{{- include "sfm-stream.fullname" .root -}}
{{- end -}}
{{- end -}}

{{/* The settings of a component, as JSON. Refuses what cannot run in a cluster, which only the chart knows. */}}
{{- define "sfm-stream.settings" -}}
{{- $settings := fromToml (include "sfm-stream.config" .) -}}
{{- $where := printf "config of %s" .component -}}
{{- if hasKey $settings "Error" -}}{{- fail (printf "%s: no TOML: %s" $where $settings.Error) -}}{{- end -}}
{{- if not (hasKey $settings "kafka") -}}
{{- fail (printf "%s: no [kafka]: workers are of pipelines on a cluster; a pipeline on files is a CronJob of `sfm-stream run`" $where) -}}
{{- end -}}
{{- $shared := fromToml .root.Values.config -}}
{{- range list "id" "epoch" -}}
{{- if ne (toString (dig "pipeline" . 1 $settings)) (toString (dig "pipeline" . 1 $shared)) -}}
{{- fail (printf "%s: another pipeline.%s than config has" $where .) -}}
{{- end -}}
{{- end -}}
{{- toJson $settings -}}
{{- end -}}

{{/* The port of the estimates of the roll-up worker; empty where it serves none. */}}
{{- define "sfm-stream.publicPort" -}}
{{- $settings := fromJson (include "sfm-stream.settings" (dict "root" . "component" "rollup")) -}}
{{- with dig "metrics" "public" "" $settings -}}
{{- if or (hasPrefix "127." .) (hasPrefix "localhost:" .) (hasPrefix "[::1]:" .) -}}
{{- fail (printf "config of rollup: metrics.public = %q: nobody outside of the container reaches it" .) -}}
{{- end -}}
{{- splitList ":" . | last -}}
{{- end -}}
{{- end -}}

{{/* Refuses a limit of memory at which the worker would be killed, and started again, before it stops by itself. */}}
{{- define "sfm-stream.enoughMemory" -}}
{{- $settings := fromJson (include "sfm-stream.settings" (dict "root" . "component" "ingest")) -}}
{{- $raw := dig "limits" "max_raw_bytes" 4294967296 $settings | int64 -}}
{{- with dig "limits" "memory" "" .Values.ingest.resources | toString -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $number := regexFind "^[0-9.]+" . -}}
{{- $unit := index $units (trimPrefix $number .) -}}
{{- if and $unit (gt (float64 $raw) (mulf (float64 $number) (float64 $unit))) -}}
{{- fail (printf "config of ingest: limits.max_raw_bytes = %d, of each partition, is more than ingest.resources.limits.memory = %s: the worker would be killed and started again, instead of stopping with a reason. Lower the one, or raise the other" $raw .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "sfm-stream.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}
