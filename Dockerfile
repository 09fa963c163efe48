# The app for hosts that are no Space of the Hugging Face Hub (a Space takes README.md's front matter instead).
FROM python:3.12-slim

RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 omnidemo && mkdir /data && chown omnidemo /data
WORKDIR /app
COPY requirements.txt constraints.txt ./
# An index of torch's own wheels, such as the one without CUDA (docs/spaces.md); empty: pip's own, whose wheels bring CUDA.
ARG TORCH_INDEX=""
RUN if [ -n "$TORCH_INDEX" ]; then pip install --no-cache-dir torch -c constraints.txt --index-url "$TORCH_INDEX"; fi
RUN pip install --no-cache-dir -r requirements.txt -c constraints.txt
COPY --chown=omnidemo . .
# The weights of the default target, and of the one that answers where memory is short; without them the app starts on its
# bundled target.
RUN for name in smollm2 qwen2.5-coder-1.5b; do OMNIDEMO_MODELS=/models python -m omnidemo fetch $name || echo "Going on without $name."; done

USER omnidemo
# Visitors come through the host's proxy, so the app listens everywhere; OMNIDEMO_ALLOWED_HOSTS names where it is reached.
# What is fetched later stays with the data.
ENV OMNIDEMO_HOST=0.0.0.0 OMNIDEMO_STORAGE=/data OMNIDEMO_MODELS=/data/models OMNIDEMO_MODEL_FOLDERS=/models PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 7860
CMD ["python", "app.py"]
